-- fire_stands_for: the tick of a schedule made no job, since an equal one waits already.
-- takes:   the schedule, the job it would have made, the one that waits
-- gives:   nothing
-- locks:   the tick's row, which is the caller's own
-- refuses: nothing
-- differs: on SQLite it is a statement of schedule_fire itself
CREATE OR REPLACE FUNCTION detent.fire_stands_for_v1(p_name text, p_job_id bigint, p_holder bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  UPDATE detent.schedule_fire f SET job_id = p_holder WHERE f.schedule = p_name AND f.job_id = p_job_id;
END $$;
