-- job_expire: cancel pending jobs whose expiry has passed.
-- takes:   how many at most
-- gives:   their ids, the longest expired first
-- locks:   exactly the ready and waiting rows it takes, then their jobs; whatever others hold is passed over
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.job_expire_v1(p_limit integer) RETURNS SETOF bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t     timestamptz := detent.clock();
  ids   bigint[];
  keyed bigint[];
BEGIN
  WITH late AS MATERIALIZED (
    SELECT c.is_ready, c.place, c.job_id, c.expires_at FROM (
      (SELECT true AS is_ready, r.ctid AS place, r.job_id, r.expires_at FROM detent.ready r
        WHERE r.expires_at <= t ORDER BY r.expires_at, r.job_id LIMIT p_limit)
      UNION ALL
      (SELECT false, w.ctid, w.job_id, w.expires_at FROM detent.waiting w
        WHERE w.expires_at <= t ORDER BY w.expires_at, w.job_id LIMIT p_limit)) c
     ORDER BY c.expires_at, c.job_id LIMIT p_limit
  ), from_ready AS (
    DELETE FROM detent.ready WHERE ctid = ANY (ARRAY(
      SELECT r.ctid FROM detent.ready r WHERE r.ctid = ANY (ARRAY(SELECT l.place FROM late l WHERE l.is_ready))
         FOR UPDATE SKIP LOCKED))
    RETURNING job_id, holds_key, expires_at
  ), from_waiting AS (
    DELETE FROM detent.waiting WHERE ctid = ANY (ARRAY(
      SELECT w.ctid FROM detent.waiting w WHERE w.ctid = ANY (ARRAY(SELECT l.place FROM late l WHERE NOT l.is_ready))
         FOR UPDATE SKIP LOCKED))
    RETURNING job_id, holds_key, expires_at
  ), gone AS (
    SELECT * FROM from_ready UNION ALL SELECT * FROM from_waiting
  )
  SELECT array_agg(g.job_id ORDER BY g.expires_at, g.job_id), array_agg(g.job_id) FILTER (WHERE g.holds_key)
    INTO ids, keyed FROM gone g;
  IF ids IS NULL THEN
    RETURN;
  END IF;
  IF keyed IS NOT NULL THEN
    DELETE FROM detent.job_key WHERE ctid = ANY (ARRAY(
      SELECT k.ctid FROM detent.job_key k WHERE k.job_id = ANY (keyed) AND k.until_claim FOR UPDATE SKIP LOCKED));
  END IF;
  INSERT INTO detent.transition_log
      (tenant, entity, entity_id, job_id, attempt, from_state, to_state, trigger, actor, correlation_id, at)
    SELECT j.tenant, 'job', j.id::text, j.id, j.attempt, j.state, 'cancelled', 'expire', 'system', j.correlation_id,
           detent.job_now(j, t)
      FROM detent.job j WHERE j.id = ANY (ids) ORDER BY array_position(ids, j.id);
  PERFORM detent.transition_count(j, 'cancelled', detent.job_now(j, t)) FROM detent.job j WHERE j.id = ANY (ids);
  UPDATE detent.job j SET state = 'cancelled', finished_at = detent.job_now(j, t) WHERE j.id = ANY (ids);
  RETURN QUERY SELECT unnest(ids);
END $$;
