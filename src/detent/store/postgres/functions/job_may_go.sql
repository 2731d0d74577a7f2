-- Whether a job is past a horizon of retention. What a run that is there was made by goes with the run, not before it.
CREATE OR REPLACE FUNCTION detent.job_may_go(j detent.job, p_before timestamptz) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN j.finished_at < p_before
     AND (j.run_id IS NULL OR NOT EXISTS (SELECT 1 FROM detent.batch_run b WHERE b.id = j.run_id));
END $$;
