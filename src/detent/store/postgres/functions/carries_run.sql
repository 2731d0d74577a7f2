-- Whether a job plans, fetches or consolidates a pipeline run: when it rests without success, its run has gone on without it.
CREATE OR REPLACE FUNCTION detent.carries_run(j detent.job) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN j.run_id IS NOT NULL AND (j.task LIKE 'detent.pipeline.page/%' OR j.task LIKE 'detent.pipeline.plan/%'
                                   OR j.task LIKE 'detent.pipeline.consolidate/%');
END $$;
