-- job_finish: end attempts as done; their jobs succeed.
-- takes:   jobs; attempts (one, if it is the same for all); results as an object keyed by `job:attempt` (null if there are
--          none); the worker's name; and, for the last jobs of the list, how many microseconds after the claim their functions
--          were called (null if that is known for none)
-- gives:   a row for each item that was refused, with what was found; the ordinary answer is empty
-- locks:   the jobs
-- refuses: a caller that does not hold the attempt, unless it is committed or done already
CREATE OR REPLACE FUNCTION detent.job_finish_v2(
  p_ids bigint[], p_attempts integer[], p_results jsonb, p_worker text, p_begun bigint[]
) RETURNS TABLE (ord integer, instead text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  t     timestamptz := detent.clock();
  held  bigint[];
  done integer;
  -- The number of jobs at the front of the list for which the time of the call is not known.
  plain integer := cardinality(p_ids) - coalesce(cardinality(p_begun), 0);
BEGIN
  IF cardinality(p_ids) > 8 THEN
    -- Look up the leases of the first and the last job once. Jobs under other leases are looked up one by one.
    held := ARRAY(
      SELECT l.id FROM detent.lease l WHERE l.expires_at > t AND l.id IN (
        SELECT k.lease_id FROM detent.job k WHERE k.id IN (p_ids[1], p_ids[cardinality(p_ids)])));
  END IF;
  -- One statement for all of them: it locks all jobs before what follows the first one, such as its group of children.
  -- Most jobs end within a millisecond, and their start is not recorded: they need no join.
  IF cardinality(p_attempts) = 1 AND plain = cardinality(p_ids) THEN
    WITH ended AS (
      UPDATE detent.job j
         SET state = 'succeeded', ended = j.attempt, error = NULL,
             finished_at = greatest(t, j.created_at, j.leased_at, j.started_at, j.committed_at,
                                    j.cancel_requested_at),
             started_at = coalesce(j.started_at, greatest(t, j.created_at, j.leased_at, j.cancel_requested_at)),
             committed_at = coalesce(j.committed_at,
                                     greatest(t, j.created_at, j.leased_at, j.started_at, j.cancel_requested_at)),
             result = CASE WHEN p_results IS NULL THEN j.result
                           ELSE coalesce(p_results ->> (j.id || ':' || j.attempt), j.result) END
       WHERE j.id = ANY (p_ids) AND j.attempt = p_attempts[1] AND j.state = 'running'
         AND (j.lease_id = ANY (held) OR j.committed_at IS NOT NULL
              OR (SELECT l.expires_at FROM detent.lease l WHERE l.id = j.lease_id) > t)
      RETURNING j.id, j.attempt, j.leased_at, j.started_at, j.committed_at, j.finished_at
    ), counted AS (
      INSERT INTO detent.succeeded_batch (job_ids) SELECT array_agg(e.id) FROM ended e HAVING count(*) > 0
    )
    INSERT INTO detent.execution
        (job_id, attempt, worker, leased_at, started_at, committed_at, done_at, outcome, next_state, counted)
      SELECT e.id, e.attempt, p_worker, e.leased_at, e.started_at, e.committed_at, e.finished_at, 'done', 'succeeded',
             true
        FROM ended e;
  ELSE
    WITH ended AS (
      UPDATE detent.job j
         SET state = 'succeeded', ended = j.attempt, error = NULL,
             finished_at = greatest(t, j.created_at, j.leased_at, j.started_at, j.committed_at,
                                    j.cancel_requested_at),
             -- Without a time of the call, least() passes over it.
             started_at = greatest(j.leased_at, least(
               j.started_at, greatest(t, j.created_at, j.cancel_requested_at),
               j.leased_at + u.begun * interval '1 microsecond')),
             committed_at = coalesce(j.committed_at,
                                     greatest(t, j.created_at, j.leased_at, j.started_at, j.cancel_requested_at)),
             result = CASE WHEN p_results IS NULL THEN j.result
                           ELSE coalesce(p_results ->> (j.id || ':' || j.attempt), j.result) END
        FROM (SELECT x.id, coalesce(x.attempt, p_attempts[1]) AS attempt, p_begun[x.ord - plain] AS begun
                FROM unnest(p_ids, p_attempts) WITH ORDINALITY AS x (id, attempt, ord) ORDER BY x.id) u
       WHERE j.id = u.id AND j.attempt = u.attempt AND j.state = 'running'
         AND (j.lease_id = ANY (held) OR j.committed_at IS NOT NULL
              OR (SELECT l.expires_at FROM detent.lease l WHERE l.id = j.lease_id) > t)
      RETURNING j.id, j.attempt, j.leased_at, j.started_at, j.committed_at, j.finished_at
    ), counted AS (
      INSERT INTO detent.succeeded_batch (job_ids) SELECT array_agg(e.id) FROM ended e HAVING count(*) > 0
    )
    INSERT INTO detent.execution
        (job_id, attempt, worker, leased_at, started_at, committed_at, done_at, outcome, next_state, counted)
      SELECT e.id, e.attempt, p_worker, e.leased_at, e.started_at, e.committed_at, e.finished_at, 'done', 'succeeded',
             true
        FROM ended e;
  END IF;
  GET DIAGNOSTICS done = ROW_COUNT;
  IF done = cardinality(p_ids) THEN
    RETURN;
  END IF;
  RETURN QUERY
    SELECT u.ord::integer, coalesce(detent.holder_lost(j, a.attempt, t), 'its lease has expired')
      FROM unnest(p_ids, p_attempts) WITH ORDINALITY AS u (id, attempt, ord)
     CROSS JOIN LATERAL (SELECT coalesce(u.attempt, p_attempts[1]) AS attempt) a
      LEFT JOIN LATERAL (SELECT k.* FROM detent.job k WHERE k.id = u.id) j ON true
     WHERE NOT EXISTS (SELECT 1 FROM detent.execution e
                        WHERE e.job_id = u.id AND e.attempt = a.attempt AND e.outcome = 'done');
END $$;
