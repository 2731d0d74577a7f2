-- job_expire_each: cancel pending jobs whose expiry has passed, one by one.
-- takes:   how many at most; the jobs to leave out
-- gives:   the jobs that were cancelled; those that could not be, and why
-- locks:   the ready or waiting row of each, then its job; rows that others hold are passed over
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.job_expire_each_v1(p_limit integer, p_skip bigint[])
RETURNS TABLE (done bigint[], bad bigint[], causes text[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t    timestamptz := detent.clock();
  late record;
  j    detent.job;
BEGIN
  done := '{}';
  bad := '{}';
  causes := '{}';
  FOR late IN
    SELECT c.is_ready, c.place, c.job_id FROM (
      (SELECT true AS is_ready, r.ctid AS place, r.job_id, r.expires_at FROM detent.ready r
        WHERE r.expires_at <= t AND r.job_id <> ALL (p_skip) ORDER BY r.expires_at, r.job_id LIMIT p_limit)
      UNION ALL
      (SELECT false, w.ctid, w.job_id, w.expires_at FROM detent.waiting w
        WHERE w.expires_at <= t AND w.job_id <> ALL (p_skip) ORDER BY w.expires_at, w.job_id LIMIT p_limit)) c
     ORDER BY c.expires_at, c.job_id LIMIT p_limit
  LOOP
    BEGIN
      IF late.is_ready THEN
        DELETE FROM detent.ready WHERE ctid = ANY (ARRAY(
          SELECT r.ctid FROM detent.ready r WHERE r.ctid = late.place AND r.job_id = late.job_id FOR UPDATE SKIP LOCKED));
      ELSE
        DELETE FROM detent.waiting WHERE ctid = ANY (ARRAY(
          SELECT w.ctid FROM detent.waiting w WHERE w.ctid = late.place AND w.job_id = late.job_id FOR UPDATE SKIP LOCKED));
      END IF;
      CONTINUE WHEN NOT FOUND;
      SELECT k.* INTO j FROM detent.job k WHERE k.id = late.job_id FOR UPDATE;
      IF j.id IS NULL THEN
        RAISE EXCEPTION 'the job does not exist' USING ERRCODE = 'DT041';
      ELSIF j.state <> 'pending' THEN
        RAISE EXCEPTION 'the job is %, not pending', j.state USING ERRCODE = 'DT041';
      END IF;
      DELETE FROM detent.job_key WHERE ctid = ANY (ARRAY(
        SELECT k.ctid FROM detent.job_key k WHERE k.job_id = late.job_id AND k.until_claim FOR UPDATE SKIP LOCKED));
      INSERT INTO detent.transition_log
          (tenant, entity, entity_id, job_id, attempt, from_state, to_state, trigger, actor, correlation_id, at)
        VALUES (j.tenant, 'job', j.id::text, j.id, j.attempt, j.state, 'cancelled', 'expire', 'system', j.correlation_id,
                detent.job_now(j, t));
      PERFORM detent.transition_count(j, 'cancelled', detent.job_now(j, t));
      UPDATE detent.job k SET state = 'cancelled', finished_at = detent.job_now(j, t) WHERE k.id = j.id;
      done := done || j.id;
    EXCEPTION WHEN OTHERS THEN
      IF NOT detent.is_of_one_row(SQLSTATE) THEN
        RAISE;
      END IF;
      bad := bad || late.job_id;
      causes := causes || SQLERRM;
    END;
  END LOOP;
  RETURN NEXT;
END $$;
