-- batch_create: a run in state preview, where there is none of this id. Its plan's job is enqueued by the caller in the same
-- transaction.
-- takes:   the run
-- gives:   whether it is new
-- locks:   the new row
-- refuses: nothing: what is there under this id is the caller's to compare
CREATE OR REPLACE FUNCTION detent.batch_create_v1(
  p_id bigint, p_tenant text, p_batch text, p_payload text, p_fingerprint text, p_actor text, p_reason text,
  p_correlation_id text, p_metadata text, p_tolerate_count integer, p_tolerate_share double precision
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t timestamptz := detent.clock();
BEGIN
  INSERT INTO detent.batch_run (id, tenant, batch, payload, fingerprint, actor, reason, correlation_id, metadata,
      tolerate_count, tolerate_share, created_at, moved_at)
    VALUES (p_id, p_tenant, p_batch, p_payload, p_fingerprint, p_actor, p_reason, p_correlation_id, p_metadata,
            p_tolerate_count, p_tolerate_share, t, t)
    ON CONFLICT (id) DO NOTHING;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  INSERT INTO detent.transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, reason, metadata, correlation_id, at)
    VALUES (p_tenant, 'batch_run', p_id::text, NULL, 'preview', 'create', p_actor, p_reason, p_metadata, p_correlation_id, t);
  RETURN true;
END $$;
