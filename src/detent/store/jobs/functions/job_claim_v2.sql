-- job_claim: hand ready jobs to one caller, under one new lease.
-- takes:   the lease, the worker's name, which queues, tasks and tenants (null is any), how many, for how many seconds,
--          and after which tenant the turns begin. Bounds: how far the caller has emptied lanes. A claim that does not get
--          enough reads below them too, so a bound may delay a job, but never hides it. After_lane: the lane after which to
--          begin, if there are more lanes than one claim reads. Versions: of workflows that have begun, only those of these
--          tasks and versions (null is any), in parallel arrays
-- gives:   the jobs in the order of the claim. To a caller that gives bounds, one row may come first that has no job: how far
--          this claim has come in its lanes, and the cursor for the next one
-- locks:   exactly the ready rows it takes, then their jobs; rows that others have locked are skipped. If any of these tasks
--          or queues has a limit, the rows of the limits first: claims under one limit follow one another
-- refuses: everything, if a ready row has no pending job, or one that has committed (DT041); job_claim_each skips that row
-- differs: SQLite has one writer, so nothing is locked there, and no dead rows, so it needs no bounds
CREATE OR REPLACE FUNCTION detent.job_claim_v2(
  p_lease_id bigint, p_worker text, p_queues text[], p_tasks text[], p_limit integer, p_lease double precision,
  p_tenants text[] DEFAULT NULL, p_after_tenant text DEFAULT NULL,
  p_bound_lanes bigint[] DEFAULT NULL, p_bound_ats timestamptz[] DEFAULT NULL, p_bound_ids bigint[] DEFAULT NULL,
  p_after_lane bigint DEFAULT NULL, p_version_tasks text[] DEFAULT NULL, p_versions integer[] DEFAULT NULL
) RETURNS TABLE (
  job_id bigint, attempt integer, task text, payload text, tenant text, queue text, metadata text, correlation_id text,
  traceparent text, run_id bigint, spared integer, attempts_max integer, bound_lanes bigint[], bound_ats timestamptz[],
  bound_ids bigint[], after_lane bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET enable_bitmapscan = off AS $$
#variable_conflict use_column
DECLARE
  t       timestamptz;
  ids     bigint[];
  keyed   bigint[];
  limited boolean;
  met     integer;
  got     integer;
BEGIN
  SELECT r.ids, r.keyed, r.bound_lanes, r.bound_ats, r.bound_ids, r.after_lane, r.limited, r.tenants_met
    INTO ids, keyed, bound_lanes, bound_ats, bound_ids, after_lane, limited, met
    FROM detent.claim_rows(
      p_queues, p_tasks, p_limit, p_tenants, p_after_tenant, NULL, p_bound_lanes, p_bound_ats, p_bound_ids, p_after_lane,
      p_version_tasks, p_versions) r;
  t := detent.clock();
  IF cardinality(ids) < p_limit OR limited THEN
    bound_lanes := NULL;
  END IF;
  IF p_bound_lanes IS NOT NULL AND (bound_lanes IS NOT NULL OR after_lane IS NOT NULL) THEN
    RETURN NEXT;
  END IF;
  IF cardinality(ids) = 0 THEN
    RETURN;
  END IF;
  IF cardinality(keyed) > 0 THEN
    -- A key that is locked has expired, and another transaction is about to take it.
    DELETE FROM detent.job_key WHERE ctid = ANY (ARRAY(
      SELECT k.ctid FROM detent.job_key k WHERE k.job_id = ANY (keyed) AND k.until_claim FOR UPDATE SKIP LOCKED));
  END IF;
  RETURN QUERY
    WITH claimed AS (
      UPDATE detent.job
         SET state = 'running', attempt = attempt + 1, lease_id = p_lease_id, started_at = NULL, committed_at = NULL,
             leased_at = greatest(t, due_at, leased_at, started_at, finished_at, cancel_requested_at)
       WHERE id = ANY (ids) AND state = 'pending'
         AND (leased_at IS NULL OR (
           SELECT e.attempt FROM detent.execution e WHERE e.job_id = job.id AND e.committed_at IS NOT NULL LIMIT 1) IS NULL)
      RETURNING id, attempt, task, payload, tenant, queue, metadata, correlation_id, traceparent, run_id, spared,
                attempts_max, priority, due_at
    ), turns AS (
      -- If there is only one tenant, no turns are counted.
      SELECT c.*, 0 AS turn FROM claimed c WHERE met = 1
      UNION ALL
      SELECT c.*, row_number() OVER (PARTITION BY c.tenant COLLATE "C" ORDER BY c.priority DESC, c.due_at, c.id) FROM claimed c
       WHERE met <> 1
    ), in_order AS MATERIALIZED (
      SELECT * FROM turns u
       ORDER BY u.turn, coalesce(u.tenant COLLATE "C" <= p_after_tenant, false), u.tenant COLLATE "C", u.priority DESC, u.due_at,
                u.id
    ), leased AS (
      INSERT INTO detent.lease (id, worker, leased_at, expires_at, job_ids)
        SELECT p_lease_id, p_worker, t, t + make_interval(secs => p_lease), array_agg(o.id) FROM in_order o
        HAVING count(*) > 0
    )
    SELECT o.id, o.attempt, o.task, o.payload, o.tenant, o.queue, o.metadata, o.correlation_id, o.traceparent, o.run_id,
           o.spared, o.attempts_max, NULL::bigint[], NULL::timestamptz[], NULL::bigint[], NULL::bigint
      FROM in_order o;
  GET DIAGNOSTICS got = ROW_COUNT;
  IF got < cardinality(ids) THEN
    RAISE EXCEPTION 'DT041 % of % ready rows have no pending job that has yet to commit', cardinality(ids) - got,
      cardinality(ids) USING ERRCODE = 'DT041';
  END IF;
END $$;
