-- The clock, but never before anything that has happened to the job.
CREATE OR REPLACE FUNCTION detent.job_now(j detent.job, t timestamptz) RETURNS timestamptz
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN greatest(t, j.created_at, j.leased_at, j.started_at, j.committed_at, j.finished_at, j.cancel_requested_at);
END $$;
