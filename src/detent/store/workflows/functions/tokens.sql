-- signal_key: the secret with which tokens of signals are signed.
-- takes:   nothing
-- gives:   the secret; null if there is none
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.signal_key_v1() RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
BEGIN
  RETURN (SELECT k.secret FROM detent.signal_key k WHERE k.n = 1);
END $$;

-- signal_redeem: send the signal of a token that counts for one wait.
-- takes:   the job, the generation and the path of the token; name, payload, dedupe, actor and reason of the signal; p_notify as for
--          signal_send
-- gives:   one row as signal_send does; or `over` if the wait has ended, or the generation of the token
-- locks:   the job, with its ready or waiting row first, so that the wait cannot end meanwhile
-- refuses: as signal_send, and a wait that is over
CREATE OR REPLACE FUNCTION detent.signal_redeem_v1(
  p_id bigint, p_generation integer, p_token text, p_name text, p_payload text, p_dedupe text, p_actor text, p_reason text,
  p_notify boolean DEFAULT true
) RETURNS TABLE (ord integer, answer text, seq bigint, detail text, requested boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  j detent.job := detent.job_lock(p_id);
BEGIN
  IF j.state IN ('pending', 'running', 'quarantined')
     AND NOT EXISTS (SELECT 1 FROM detent.workflow_signal g
                      WHERE g.job_id = p_id AND g.name = p_name AND g.dedupe = p_dedupe)
     AND (EXISTS (SELECT 1 FROM detent.workflow w WHERE w.job_id = p_id AND w.generation <> p_generation)
          OR EXISTS (SELECT 1 FROM detent.workflow_step b
                       JOIN detent.workflow_step s ON s.job_id = p_id AND s.generation = p_generation AND s.path = b.fingerprint
                      WHERE b.job_id = p_id AND b.generation = p_generation AND b.path = p_token)) THEN
    RETURN QUERY SELECT 1, 'over', NULL::bigint, NULL::text, false;
  ELSE
    RETURN QUERY
      SELECT s.* FROM detent.signal_send_v1(
        ARRAY[p_id], ARRAY[p_name], ARRAY[p_payload], ARRAY[p_dedupe], ARRAY[p_actor], ARRAY[p_reason], false, p_notify) s;
  END IF;
END $$;
