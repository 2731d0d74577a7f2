-- What a job and its execution are in the words of operations.
CREATE OR REPLACE FUNCTION detent.ops_state(p_state text, p_started_at timestamptz) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE p_state WHEN 'pending' THEN 'queued' WHEN 'succeeded' THEN 'success'
           WHEN 'running' THEN CASE WHEN p_started_at IS NULL THEN 'claimed' ELSE 'running' END ELSE p_state END
$$;
