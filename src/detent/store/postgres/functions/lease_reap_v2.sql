-- lease_reap: take expired leases away.
-- takes:   how many leases at most; of which task the jobs under them must be (null is any); for how many seconds after a gap
--          in the watch leases that ran out in it are spared (null is none)
-- gives:   how many leases are gone; the jobs whose attempt ended as expired (or unknown), and the committed ones that
--          were brought to succeeded; how many expired leases stay, since somebody has jobs of theirs locked
-- locks:   the lease rows and the jobs under them; whatever others hold is passed over
-- refuses: nothing
-- differs: SQLite has one writer, so no job is ever passed over there
CREATE OR REPLACE FUNCTION detent.lease_reap_v2(
  p_limit integer, p_task text DEFAULT NULL, p_grace double precision DEFAULT NULL
)
RETURNS TABLE (leases integer, aborted bigint[], recovered bigint[], passed_over integer)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_variable
DECLARE
  t     timestamptz := detent.clock();
  lease detent.lease;
  j     detent.job;
  gap   record;
BEGIN
  gap := detent.unwatched(t, p_grace);
  leases := 0;
  aborted := '{}';
  recovered := '{}';
  passed_over := 0;
  -- A lease renewed since the look fails the condition when its lock is had: expiry is checked where it acts.
  FOR lease IN
    SELECT l.* FROM detent.lease l
     WHERE l.expires_at <= t AND (l.expires_at > gap.from_at AND l.expires_at <= gap.to_at) IS NOT TRUE
       AND (p_task IS NULL OR EXISTS (SELECT 1 FROM detent.job k WHERE k.id = ANY (l.job_ids) AND k.task = p_task))
     ORDER BY l.expires_at, l.id LIMIT p_limit FOR UPDATE SKIP LOCKED
  LOOP
    FOR j IN
      SELECT k.* FROM detent.job k
       WHERE k.id = ANY (lease.job_ids) AND k.lease_id = lease.id AND k.state = 'running'
       ORDER BY k.id FOR UPDATE SKIP LOCKED
    LOOP
      IF j.committed_at IS NULL THEN
        PERFORM detent.attempt_abort(j, lease.worker, 'expired', NULL, 0, false, t);
        aborted := aborted || j.id;
      ELSE
        PERFORM detent.attempt_done(j, lease.worker, t);
        recovered := recovered || j.id;
      END IF;
    END LOOP;
    DELETE FROM detent.lease l
     WHERE l.id = lease.id AND NOT EXISTS (
       SELECT 1 FROM detent.job k WHERE k.id = ANY (lease.job_ids) AND k.lease_id = lease.id AND k.state = 'running');
    IF FOUND THEN
      leases := leases + 1;
    ELSE
      passed_over := passed_over + 1;
    END IF;
  END LOOP;
  IF cardinality(aborted) > 0 THEN
    PERFORM detent.wake_waiters(false);
  END IF;
  RETURN NEXT;
END $$;
