-- reconcile_begin: a look at a run. The caller has the run's lock; the job is enqueued by the caller in the same transaction.
-- takes:   the run, the number of the look by plan (null: by hand), who, the job; which look comes next by plan, and when
-- gives:   the number of this one
-- locks:   the run
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.reconcile_begin_v1(
  p_run_id bigint, p_planned integer, p_actor text, p_job_id bigint, p_next integer, p_next_at timestamptz
) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t    timestamptz := detent.clock();
  made integer := 1 + coalesce((SELECT max(r.no) FROM detent.reconciliation r WHERE r.run_id = p_run_id), 0);
BEGIN
  INSERT INTO detent.reconciliation (run_id, no, planned, actor, job_id, created_at)
    VALUES (p_run_id, made, p_planned, p_actor, p_job_id, t);
  UPDATE detent.batch_run b SET reconcile_no = p_next, reconcile_at = p_next_at WHERE p_planned IS NOT NULL AND b.id = p_run_id;
  RETURN made;
END $$;
