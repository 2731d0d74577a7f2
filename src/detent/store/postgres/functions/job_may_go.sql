-- Whether a job that finished then, for that run, is past a horizon of retention. What a run that is there was made by goes
-- with the run, not before it. (Not the whole job: to hand it over would read its payload.)
CREATE OR REPLACE FUNCTION detent.job_may_go(p_finished_at timestamptz, p_run_id bigint, p_before timestamptz) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN p_finished_at < p_before
     AND (p_run_id IS NULL OR NOT EXISTS (SELECT 1 FROM detent.batch_run b WHERE b.id = p_run_id));
END $$;
