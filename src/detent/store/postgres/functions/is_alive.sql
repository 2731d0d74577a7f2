-- Whether an attempt at a job is alive: running, under a lease that has not expired.
CREATE OR REPLACE FUNCTION detent.is_alive(p_job_id bigint, p_attempt integer, t timestamptz) RETURNS boolean
LANGUAGE sql STABLE AS $$
  SELECT EXISTS (SELECT 1 FROM detent.job j JOIN detent.lease l ON l.id = j.lease_id
                  WHERE j.id = p_job_id AND j.state = 'running' AND j.attempt = p_attempt AND l.expires_at > t)
$$;
