-- Delete jobs, which are locked and may go, with all their records. The job first: the guards let records go only when their
-- job is gone.
CREATE OR REPLACE FUNCTION detent.jobs_go(p_ids bigint[]) RETURNS void
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  -- Jobs that have succeeded and are not counted yet are counted before they go.
  WHILE detent.counts_fold_v1(100) > 0 LOOP
  END LOOP;
  WITH gone AS (
    DELETE FROM detent.job j WHERE j.id = ANY (p_ids) RETURNING j.tenant, j.queue, j.task, j.state, j.finished_at
  )
  INSERT INTO detent.finished_delta (tenant, queue, task, state, jobs)
    SELECT g.tenant, g.queue, g.task, g.state, -count(*) FROM gone g WHERE g.finished_at IS NOT NULL
     GROUP BY g.tenant, g.queue, g.task, g.state;
  DELETE FROM detent.execution e WHERE e.job_id = ANY (p_ids);
  DELETE FROM detent.event e WHERE e.job_id = ANY (p_ids);
  DELETE FROM detent.transition_log l WHERE l.job_id = ANY (p_ids);
  DELETE FROM detent.dead d WHERE d.job_id = ANY (p_ids);
  DELETE FROM detent.untold u WHERE u.job_id = ANY (p_ids);
  DELETE FROM detent.ops_run r WHERE r.job_id = ANY (p_ids);
END $$;
