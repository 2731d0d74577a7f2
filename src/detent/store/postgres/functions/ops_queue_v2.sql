-- ops_queue: accept an ops run, queued.
-- takes:   a reserved id, a nonce, project, environment, sha, ref, metadata, a key, when it expires if nobody has claimed it
-- gives:   no row where it was simply created; else found (job_id stands for it), id_conflict or key_conflict (job_id holds it)
-- locks:   new rows only. Who asks for a key, or an environment, that an open transaction has made waits for its end
-- refuses: an id or a key that belongs to something else
CREATE OR REPLACE FUNCTION detent.ops_queue_v2(
  p_id bigint, p_nonce bigint, p_project_id text, p_env text, p_git_sha text, p_git_ref text, p_metadata text, p_key text,
  p_expires_at timestamptz
) RETURNS TABLE (answer text, job_id bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
#variable_conflict use_column
DECLARE
  t       timestamptz := detent.clock();
  -- Its keys stand in the order of the alphabet, as in a fingerprint.
  payload text := format('{"env":%s,"git_ref":%s,"git_sha":%s,"project_id":%s}', to_json(p_env),
                         coalesce(to_json(p_git_ref), 'null'), coalesce(to_json(p_git_sha), 'null'), to_json(p_project_id));
BEGIN
  RETURN QUERY
    SELECT q.answer, q.job_id FROM detent.job_enqueue_v1(
      ARRAY[p_id], ARRAY[p_nonce], ARRAY['ops.run'], ARRAY[payload], p_queues => ARRAY['ops'], p_attempts_max => ARRAY[1],
      p_dead_letters => ARRAY[false], p_metadatas => ARRAY[p_metadata],
      p_expires_ats => ARRAY[p_expires_at],
      -- Keys of ops runs are a namespace of their own: no plain job may have a key that begins like this.
      p_keys => CASE WHEN p_key IS NULL THEN '{}'::text[] ELSE ARRAY['detent:ops:' || p_key] END,
      p_fingerprints => CASE WHEN p_key IS NULL THEN '{}'::text[] ELSE ARRAY[left(encode(
        sha256(convert_to('ops.run', 'UTF8') || '\x00'::bytea || convert_to(payload, 'UTF8')), 'hex'), 32)] END) q;
  IF NOT FOUND THEN
    INSERT INTO detent.ops_run (job_id, environment_id, git_sha, git_ref, key)
      VALUES (p_id, detent.ops_environment(p_project_id, p_env, t), p_git_sha, p_git_ref, p_key);
    PERFORM pg_notify('ops_runs', format('{"run_id":"run-%s","status":"queued"}', p_id));
  END IF;
END $$;
