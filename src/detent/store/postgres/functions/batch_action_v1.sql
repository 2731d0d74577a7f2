-- batch_action: an action by its id, which nobody else can carry on until the caller's transaction has ended.
-- takes:   the action
-- gives:   its row
-- locks:   the action
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.batch_action_v1(p_action_id bigint) RETURNS SETOF detent.batch_action
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY SELECT a.* FROM detent.batch_action a WHERE a.id = p_action_id FOR UPDATE;
END $$;
