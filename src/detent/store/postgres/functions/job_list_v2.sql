-- job_list: jobs that fit a search, the newest first by creation.
-- takes:   state, task, queue, tenant, key (of the tenant, else of none), correlation id, run, worker, a part of an error,
--          names and values of metadata (each value: a JSON array of those that fit), the earliest time of creation (null is
--          any for each); the place to go on after; how many jobs to give, and how many to look at
-- gives:   jobs that fit; and, if it stopped looking before the end, the last job it looked at, which does not fit
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.job_list_v2(
  p_state text, p_task text, p_queue text, p_tenant text, p_key text, p_correlation_id text, p_run_id bigint, p_worker text,
  p_error text, p_names text[], p_values text[], p_since timestamptz, p_after_at timestamptz, p_after_id bigint,
  p_limit integer, p_looks integer
) RETURNS TABLE (fits boolean, job detent.job)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  step   integer := p_limit;  -- without other filters the first portion is the page
  found  integer := 0;
  looked integer := 0;
  more   integer;
  few    bigint[];
  ids    bigint[];
BEGIN
  -- The jobs of a key, and those of a state that has rows of its own, if they are few: all of them at once.
  IF p_key IS NOT NULL THEN
    few := ARRAY(SELECT k.job_id FROM detent.job_key k WHERE k.tenant = coalesce(p_tenant, '') AND k.key = p_key);
  ELSIF p_run_id IS NOT NULL OR p_correlation_id IS NOT NULL THEN
    few := NULL;
  ELSIF p_state = 'running' THEN
    few := ARRAY(SELECT u.id FROM detent.lease l CROSS JOIN LATERAL unnest(l.job_ids) AS u (id) LIMIT p_looks + 1);
  ELSIF p_state = 'quarantined' THEN
    few := ARRAY(SELECT d.job_id FROM detent.dead d LIMIT p_looks + 1);
  ELSIF p_state IN ('failed', 'cancelled') THEN
    few := ARRAY(SELECT u.job_id FROM detent.unsuccessful u WHERE u.state = p_state LIMIT p_looks + 1);
  ELSIF p_state = 'pending' THEN
    few := ARRAY(SELECT u.job_id FROM (SELECT r.job_id FROM detent.ready r UNION ALL SELECT w.job_id FROM detent.waiting w) u LIMIT p_looks + 1);
  END IF;
  IF cardinality(few) > p_looks THEN
    few := NULL;
  END IF;
  LOOP
    IF few IS NOT NULL THEN
      ids := few;
    ELSIF p_run_id IS NOT NULL THEN
      ids := ARRAY(SELECT j.id FROM detent.job j
                    WHERE j.run_id = p_run_id AND (j.created_at, j.id) < (p_after_at, p_after_id) AND j.created_at >= p_since
                    ORDER BY j.created_at DESC, j.id DESC LIMIT step);
    ELSIF p_correlation_id IS NOT NULL THEN
      ids := ARRAY(SELECT j.id FROM detent.job j
                    WHERE j.correlation_id = p_correlation_id AND (j.created_at, j.id) < (p_after_at, p_after_id)
                      AND j.created_at >= p_since
                    ORDER BY j.created_at DESC, j.id DESC LIMIT step);
    ELSE
      -- Spans of one time may overlap, so an id may come twice: its job is given once all the same.
      ids := ARRAY(SELECT j.id
                     FROM detent.job_span s
                    CROSS JOIN LATERAL (
                      SELECT k.id FROM detent.job k
                       WHERE k.id BETWEEN s.first_id AND s.last_id AND k.created_at = s.created_at
                         AND (k.created_at, k.id) < (p_after_at, p_after_id) OFFSET 0) j
                    WHERE (s.created_at, s.block) <= (p_after_at, p_after_id >> 10) AND s.created_at >= p_since
                    ORDER BY s.created_at DESC, s.block DESC, j.id DESC LIMIT step);
    END IF;
    RETURN QUERY
      SELECT true, j FROM detent.job j
       WHERE j.id = ANY (ids) AND (j.created_at, j.id) < (p_after_at, p_after_id) AND j.created_at >= p_since
         AND (p_state IS NULL OR j.state = p_state) AND (p_task IS NULL OR j.task = p_task)
         AND (p_queue IS NULL OR j.queue = p_queue) AND (p_tenant IS NULL OR j.tenant = p_tenant)
         AND (p_correlation_id IS NULL OR j.correlation_id = p_correlation_id) AND (p_run_id IS NULL OR j.run_id = p_run_id)
         AND (p_worker IS NULL
              OR EXISTS (SELECT 1 FROM detent.execution e WHERE e.job_id = j.id AND e.worker = p_worker)
              OR EXISTS (SELECT 1 FROM detent.lease l WHERE l.id = j.lease_id AND j.state = 'running' AND l.worker = p_worker))
         AND (p_error IS NULL OR position(p_error IN coalesce(j.error, '')) > 0
              OR EXISTS (SELECT 1 FROM detent.execution e WHERE e.job_id = j.id AND position(p_error IN coalesce(e.error, '')) > 0))
         AND (p_names IS NULL OR detent.metadata_fits(j.metadata, p_names, p_values))
       ORDER BY j.created_at DESC, j.id DESC LIMIT p_limit - found;
    GET DIAGNOSTICS more = ROW_COUNT;
    found := found + more;
    looked := looked + cardinality(ids);
    EXIT WHEN few IS NOT NULL OR found >= p_limit OR cardinality(ids) < step;
    IF looked >= p_looks THEN
      RETURN QUERY SELECT false, j FROM detent.job j WHERE j.id = ids[step];
      EXIT;
    END IF;
    SELECT j.created_at, j.id INTO p_after_at, p_after_id FROM detent.job j WHERE j.id = ids[step];
    step := greatest(p_limit, 1000);
  END LOOP;
END $$;
