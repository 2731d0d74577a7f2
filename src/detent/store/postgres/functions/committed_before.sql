-- The attempt of a job that has committed and ended; null where none has. Its row need not tell: damage may have changed it.
CREATE OR REPLACE FUNCTION detent.committed_before(p_job_id bigint) RETURNS integer
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT e.attempt FROM detent.execution e WHERE e.job_id = p_job_id AND e.committed_at IS NOT NULL LIMIT 1);
END $$;
