-- pipeline_force: consolidate what is there of a skipped run, in spite of its failed partitions.
-- takes:   run, who, why
-- gives:   the state it was in; null where there is no such run
-- locks:   the run
-- refuses: a run that was not skipped
CREATE OR REPLACE FUNCTION detent.pipeline_force_v1(p_run_id bigint, p_actor text, p_reason text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t timestamptz := detent.clock();
  r detent.pipeline_run;
BEGIN
  SELECT k.* INTO r FROM detent.pipeline_run k WHERE k.id = p_run_id FOR UPDATE;
  IF r.state = 'consolidation_skipped' THEN
    t := greatest(t, r.moved_at);
    PERFORM detent.pipeline_log(r, r.state, 'consolidation_triggered', 'force', p_actor, p_reason, true, t);
    UPDATE detent.pipeline_run SET state = 'consolidation_triggered', moved_at = t WHERE id = p_run_id;
  END IF;
  RETURN r.state;
END $$;
