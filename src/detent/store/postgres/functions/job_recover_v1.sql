-- job_recover: bring committed jobs to succeeded.
-- takes:   jobs
-- gives:   one row per job that is there: its attempt, whether it is committed, and the state it was found in
-- locks:   the jobs, by id
-- refuses: what is not committed
CREATE OR REPLACE FUNCTION detent.job_recover_v1(p_ids bigint[])
RETURNS TABLE (job_id bigint, attempt integer, committed boolean, state text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  t timestamptz := detent.clock();
  j detent.job;
BEGIN
  FOR j IN SELECT k.* FROM detent.job k WHERE k.id = ANY (p_ids) ORDER BY k.id FOR UPDATE LOOP
    IF j.committed_at IS NOT NULL AND j.state = 'running' THEN
      PERFORM detent.attempt_done(j, coalesce((SELECT l.worker FROM detent.lease l WHERE l.id = j.lease_id), ''), t);
    END IF;
    job_id := j.id;
    attempt := j.attempt;
    committed := j.committed_at IS NOT NULL;
    state := j.state;
    RETURN NEXT;
  END LOOP;
END $$;
