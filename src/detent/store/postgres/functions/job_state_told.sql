-- The state of a job for whoever would move it by hand; of an ops run, which has a lifecycle of its own, in its words.
CREATE OR REPLACE FUNCTION detent.job_state_told(j detent.job) RETURNS text
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN CASE WHEN j.task = 'ops.run' THEN 'ops_run ' || detent.ops_state(j.state, j.started_at) ELSE j.state END;
END $$;
