-- batch_step: an action has come further. The caller has its lock, and has moved the targets in this transaction.
-- takes:   the action, from where to where, how many targets were moved, whether that is all
-- gives:   whether it was there
-- locks:   the action; at its end the run
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.batch_step_v1(p_action_id bigint, p_from integer, p_to integer, p_moved integer, p_last boolean)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t   timestamptz := detent.clock();
  run bigint;
BEGIN
  UPDATE detent.batch_action a
     SET cursor = p_to, moved = a.moved + p_moved, done_at = CASE WHEN p_last THEN greatest(t, a.created_at) END
   WHERE a.id = p_action_id AND a.cursor = p_from AND a.done_at IS NULL
  RETURNING a.run_id INTO run;
  IF run IS NULL THEN
    RETURN false;
  END IF;
  UPDATE detent.batch_run b SET outstanding = 0, moved_at = greatest(t, b.moved_at) WHERE p_last AND b.id = run;
  RETURN true;
END $$;
