-- lease_reap_each: take expired leases away, job by job.
-- takes:   how many leases at most; the leases to leave out; the grace, as for lease_reap
-- gives:   as lease_reap; and of each job that could not be ended its lease, its id and why
-- locks:   the lease rows and the jobs under them; rows that others hold are passed over
-- refuses: nothing
-- differs: SQLite keeps the jobs of a lease as JSON text, so there a lease itself can be unreadable
CREATE OR REPLACE FUNCTION detent.lease_reap_each_v2(p_limit integer, p_skip bigint[], p_grace double precision)
RETURNS TABLE (leases integer, aborted bigint[], recovered bigint[], passed_over integer, bad_leases bigint[],
               bad_jobs bigint[], causes text[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_variable
DECLARE
  t      timestamptz := detent.clock();
  lease  detent.lease;
  j      detent.job;
  is_bad boolean;
  gap    record;
BEGIN
  gap := detent.unwatched(t, p_grace);
  leases := 0;
  aborted := '{}';
  recovered := '{}';
  passed_over := 0;
  bad_leases := '{}';
  bad_jobs := '{}';
  causes := '{}';
  FOR lease IN
    SELECT l.* FROM detent.lease l
     WHERE l.expires_at <= t AND (l.expires_at > gap.from_at AND l.expires_at <= gap.to_at) IS NOT TRUE AND l.id <> ALL (p_skip)
     ORDER BY l.expires_at, l.id LIMIT p_limit FOR UPDATE SKIP LOCKED
  LOOP
    is_bad := false;
    FOR j IN
      SELECT k.* FROM detent.job k
       WHERE k.id = ANY (lease.job_ids) AND k.lease_id = lease.id AND k.state = 'running'
       ORDER BY k.id FOR UPDATE SKIP LOCKED
    LOOP
      BEGIN
        IF j.committed_at IS NULL THEN
          PERFORM detent.attempt_abort(j, lease.worker, 'expired', NULL, 0, false, t);
          aborted := aborted || j.id;
        ELSE
          PERFORM detent.attempt_done(j, lease.worker, t);
          recovered := recovered || j.id;
        END IF;
      EXCEPTION WHEN OTHERS THEN
        IF NOT detent.is_of_one_row(SQLSTATE) THEN
          RAISE;
        END IF;
        is_bad := true;
        bad_leases := bad_leases || lease.id;
        bad_jobs := bad_jobs || j.id;
        causes := causes || SQLERRM;
      END;
    END LOOP;
    DELETE FROM detent.lease l
     WHERE l.id = lease.id AND NOT EXISTS (
       SELECT 1 FROM detent.job k WHERE k.id = ANY (lease.job_ids) AND k.lease_id = lease.id AND k.state = 'running');
    IF FOUND THEN
      leases := leases + 1;
    ELSIF NOT is_bad THEN
      passed_over := passed_over + 1;
    END IF;
  END LOOP;
  IF cardinality(aborted) > 0 THEN
    PERFORM detent.wake_waiters(false);
  END IF;
  RETURN NEXT;
END $$;
