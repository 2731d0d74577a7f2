-- job_claim_each: hand ready jobs to one caller, job by job, where a damaged row makes job_claim fail.
-- takes:   what job_claim takes, without bounds; the jobs to leave out
-- gives:   the jobs in the order of the claim; then one row without a job if there are rows that could not be claimed, with
--          the jobs they name and the causes. A row without a pending job is deleted. If a committed attempt is on record,
--          its job becomes succeeded. A job whose row refuses the claim stays in the queue
-- locks:   what job_claim does
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.job_claim_each_v1(
  p_lease_id bigint, p_worker text, p_queues text[], p_tasks text[], p_limit integer, p_lease double precision,
  p_tenants text[], p_after_tenant text, p_skip bigint[], p_version_tasks text[] DEFAULT NULL, p_versions integer[] DEFAULT NULL
) RETURNS TABLE (
  job_id bigint, attempt integer, task text, payload text, tenant text, queue text, metadata text, correlation_id text,
  traceparent text, run_id bigint, spared integer, attempts_max integer, bad bigint[], causes text[]
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET enable_bitmapscan = off AS $$
#variable_conflict use_column
DECLARE
  t         timestamptz;
  taken     record;
  one       bigint;
  j         detent.job;
  committed detent.execution;
  held      bigint[] := '{}';
  cause     text;
BEGIN
  SELECT r.ids, r.keyed INTO taken
    FROM detent.claim_rows(p_queues, p_tasks, p_limit, p_tenants, p_after_tenant, p_skip, NULL, NULL, NULL, NULL,
                           p_version_tasks, p_versions) r;
  t := detent.clock();
  bad := '{}';
  causes := '{}';
  FOREACH one IN ARRAY taken.ids LOOP
    cause := NULL;
    BEGIN
      SELECT k.* INTO j FROM detent.job k WHERE k.id = one FOR UPDATE;
      SELECT e.* INTO committed FROM detent.execution e WHERE e.job_id = one AND e.committed_at IS NOT NULL
       ORDER BY e.attempt LIMIT 1;
      IF j.id IS NULL THEN
        cause := 'a row in ready has no job';
      ELSIF one = ANY (held) THEN
        cause := 'the job has two rows in ready';
      ELSIF j.state <> 'pending' THEN
        cause := 'the job is ' || j.state || ' and has a row in ready';
      ELSIF committed.job_id IS NOT NULL THEN
        PERFORM detent.job_log(j, 'succeeded', 'repair', 'system', 'attempt ' || committed.attempt || ' has committed',
                               detent.job_now(j, t));
        UPDATE detent.job k
           SET state = 'succeeded', attempt = greatest(k.attempt, committed.attempt),
               ended = greatest(k.attempt, committed.attempt), committed_at = committed.committed_at,
               finished_at = committed.done_at
         WHERE k.id = one;
        cause := 'attempt ' || committed.attempt || ' has committed: the job is succeeded, and does not run again';
      ELSE
        IF one = ANY (taken.keyed) THEN
          DELETE FROM detent.job_key k WHERE k.job_id = one AND k.until_claim;
        END IF;
        UPDATE detent.job k
           SET state = 'running', attempt = k.attempt + 1, lease_id = p_lease_id, started_at = NULL, committed_at = NULL,
               leased_at = greatest(t, k.due_at, k.leased_at, k.started_at, k.finished_at, k.cancel_requested_at)
         WHERE k.id = one;
        held := held || one;
      END IF;
    EXCEPTION WHEN OTHERS THEN
      IF NOT detent.is_of_one_row(SQLSTATE) THEN
        RAISE;
      END IF;
      cause := SQLERRM;
      BEGIN
        PERFORM detent.queue_enter(j, t, one = ANY (taken.keyed));
      EXCEPTION WHEN OTHERS THEN
        IF NOT detent.is_of_one_row(SQLSTATE) THEN
          RAISE;
        END IF;
      END;
    END;
    IF cause IS NOT NULL THEN
      bad := bad || one;
      causes := causes || cause;
    END IF;
  END LOOP;
  IF cardinality(held) > 0 THEN
    INSERT INTO detent.lease (id, worker, leased_at, expires_at, job_ids)
      VALUES (p_lease_id, p_worker, t, t + make_interval(secs => p_lease), held);
    RETURN QUERY
      SELECT k.id, k.attempt, k.task, k.payload, k.tenant, k.queue, k.metadata, k.correlation_id, k.traceparent, k.run_id,
             k.spared, k.attempts_max, NULL::bigint[], NULL::text[]
        FROM (SELECT w.*, row_number() OVER (PARTITION BY w.tenant ORDER BY w.priority DESC, w.due_at, w.id) AS turn
                FROM detent.job w WHERE w.id = ANY (held)) k
       ORDER BY k.turn, coalesce(k.tenant COLLATE "C" <= p_after_tenant, false), k.tenant COLLATE "C", k.id;
  END IF;
  IF cardinality(bad) > 0 THEN
    RETURN NEXT;
  END IF;
END $$;
