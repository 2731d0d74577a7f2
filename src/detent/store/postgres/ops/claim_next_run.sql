-- Take the run that was queued first; no row where none waits. The token says which claim it was: give it along.
CREATE OR REPLACE FUNCTION ops.claim_next_run(p_worker_id text)
RETURNS TABLE (run_id text, project_id text, env_id text, git_sha text, git_ref text, metadata jsonb, token text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, ops, pg_temp SET jit = off AS $$
#variable_conflict use_column
DECLARE
  lease bigint;
BEGIN
  PERFORM ops.check_text('p_worker_id', p_worker_id, 200);
  lease := detent.ids_reserve_v1(1);
  RETURN QUERY
    SELECT 'run-' || c.job_id, c.project_id, 'env-' || c.env_id, c.git_sha, c.git_ref, c.metadata::jsonb,
           c.attempt || '.' || lease
      FROM detent.ops_claim_v1(lease, p_worker_id) c;
END $$;
