-- Delete jobs, which are locked and may go, with all their records. The job first: the guards let records go only when their
-- job is gone.
CREATE OR REPLACE FUNCTION detent.jobs_go(p_ids bigint[]) RETURNS void
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  newest bigint;
  times  timestamptz[];
  blocks bigint[];
BEGIN
  IF cardinality(p_ids) = 0 THEN
    RETURN;
  END IF;
  -- Jobs that have succeeded and are not counted yet are counted before they go. Those that end meanwhile are not waited for.
  newest := (SELECT max(b.n) FROM detent.succeeded_batch b);
  IF newest IS NOT NULL THEN
    -- Wait for a worker that is adding up counts: it holds batches that cannot be added up here, and it may still roll back.
    -- It also prevents deadlocks, since counts may be added up several times in this transaction.
    PERFORM pg_advisory_xact_lock(hashtextextended('detent.counts_fold', 0));
  END IF;
  WHILE EXISTS (SELECT 1 FROM detent.succeeded_batch b WHERE b.n <= newest) AND detent.counts_fold_v1(100) > 0 LOOP
  END LOOP;
  -- A slot that a claim is deleting is left to it. To wait for it would be a deadlock: the claim deletes other slots too.
  DELETE FROM detent.limit_slot WHERE ctid = ANY (ARRAY(
    SELECT s.ctid FROM detent.job j
     CROSS JOIN LATERAL (
       SELECT j.limit_key WHERE j.limit_key IS NOT NULL
       UNION SELECT m.limit_key FROM detent.limit_member m WHERE m.kind = 'task' AND m.name = j.task
       UNION SELECT m.limit_key FROM detent.limit_member m WHERE m.kind = 'queue' AND m.name = j.queue) k
      JOIN detent.limit_slot s ON s.limit_key = k.limit_key AND s.job_id = j.id
     WHERE j.id = ANY (p_ids) FOR UPDATE OF s SKIP LOCKED));
  -- Locked in order: two transactions that delete the jobs of one span must not both leave it to the other.
  SELECT array_agg(s.created_at), array_agg(s.block) INTO times, blocks
    FROM (SELECT s.created_at, s.block
            FROM (SELECT DISTINCT j.created_at, j.id >> 10 AS block FROM detent.job j WHERE j.id = ANY (p_ids)) o
            JOIN detent.job_span s ON s.created_at = o.created_at AND s.block = o.block
           ORDER BY s.created_at, s.block FOR UPDATE OF s) s;
  WITH gone AS (
    DELETE FROM detent.job j WHERE j.id = ANY (p_ids) RETURNING j.tenant, j.queue, j.task, j.state, j.finished_at
  )
  INSERT INTO detent.finished_delta (tenant, queue, task, state, jobs)
    SELECT g.tenant, g.queue, g.task, g.state, -count(*) FROM gone g WHERE g.finished_at IS NOT NULL
     GROUP BY g.tenant, g.queue, g.task, g.state;
  DELETE FROM detent.job_span s USING unnest(times, blocks) AS o (created_at, block)
   WHERE s.created_at = o.created_at AND s.block = o.block AND NOT EXISTS (
     SELECT 1 FROM detent.job j WHERE j.id BETWEEN s.first_id AND s.last_id AND j.created_at = s.created_at);
  DELETE FROM detent.execution e WHERE e.job_id = ANY (p_ids);
  DELETE FROM detent.event e WHERE e.job_id = ANY (p_ids);
  DELETE FROM detent.transition_log l WHERE l.job_id = ANY (p_ids);
  DELETE FROM detent.dead d WHERE d.job_id = ANY (p_ids);
  DELETE FROM detent.unsuccessful u WHERE u.state IN ('failed', 'cancelled') AND u.job_id = ANY (p_ids);
  DELETE FROM detent.untold u WHERE u.job_id = ANY (p_ids);
  DELETE FROM detent.ops_run r WHERE r.job_id = ANY (p_ids);
END $$;
