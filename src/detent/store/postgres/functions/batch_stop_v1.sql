-- batch_stop: stop a run after a critical error. The caller holds a job of it and enqueues the driver in the same transaction.
-- takes:   the run, why
-- gives:   whether it was stopped by this; false where it was stopped before
-- locks:   the open action, then the run
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.batch_stop_v1(p_run_id bigint, p_reason text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t timestamptz := detent.clock();
  b detent.batch_run;
BEGIN
  PERFORM 1 FROM detent.batch_action a WHERE a.run_id = p_run_id AND a.done_at IS NULL FOR UPDATE;
  SELECT r.* INTO b FROM detent.batch_run r WHERE r.id = p_run_id FOR UPDATE;
  IF b.critical IS NOT NULL THEN
    RETURN false;
  END IF;
  UPDATE detent.batch_action a SET done_at = greatest(t, a.created_at) WHERE a.run_id = p_run_id AND a.done_at IS NULL;
  UPDATE detent.batch_run r SET critical = p_reason, outstanding = 0, moved_at = greatest(t, r.moved_at) WHERE r.id = p_run_id;
  RETURN true;
END $$;
