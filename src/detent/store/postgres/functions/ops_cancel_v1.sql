-- ops_cancel: stop an ops run, whoever holds it.
-- takes:   the run's job, who, why
-- gives:   as ops_finish
-- locks:   the job, with its ready or waiting row first
-- refuses: what has ended as something else
CREATE OR REPLACE FUNCTION detent.ops_cancel_v1(p_job_id bigint, p_actor text, p_reason text DEFAULT NULL)
RETURNS TABLE (was text, state text, moved boolean, refused boolean, attempt integer, instead text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
BEGIN
  RETURN QUERY SELECT f.* FROM detent.ops_finish_v1(p_job_id, 'cancelled', '{}', p_actor, p_reason) f;
END $$;
