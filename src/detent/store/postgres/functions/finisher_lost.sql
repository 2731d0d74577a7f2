-- Why this caller is not the one who ends the run; null where it is. The job is locked.
CREATE OR REPLACE FUNCTION detent.finisher_lost(r detent.pipeline_run, j detent.job, p_run_id bigint, p_attempt integer, t timestamptz)
RETURNS text
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN coalesce(
    detent.holder_lost(j, p_attempt, t),
    CASE WHEN (r.state = 'consolidating' AND r.finisher_job_id = j.id AND r.finisher_attempt = p_attempt) IS NOT TRUE
         THEN 'the end of run ' || p_run_id || ' is not in its hands' END);
END $$;
