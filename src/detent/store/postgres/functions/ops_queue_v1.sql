-- ops_queue: accept an ops run, queued. The words of programs of schema 20 and before.
-- takes:   a reserved id, a nonce, project, environment, sha, ref, metadata, a key
-- gives:   no row where it was simply created; else found (job_id stands for it), id_conflict or key_conflict (job_id holds it)
-- locks:   new rows only. Who asks for a key, or an environment, that an open transaction has made waits for its end
-- refuses: an id or a key that belongs to something else
CREATE OR REPLACE FUNCTION detent.ops_queue_v1(
  p_id bigint, p_nonce bigint, p_project_id text, p_env text, p_git_sha text, p_git_ref text, p_metadata text, p_key text
) RETURNS TABLE (answer text, job_id bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
BEGIN
  RETURN QUERY SELECT q.* FROM detent.ops_queue_v2(p_id, p_nonce, p_project_id, p_env, p_git_sha, p_git_ref, p_metadata, p_key, NULL) q;
END $$;
