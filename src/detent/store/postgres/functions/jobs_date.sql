-- Note the time at which jobs were created, so that lists find them by it. In plpgsql, which keeps the plan.
CREATE OR REPLACE FUNCTION detent.jobs_date(t timestamptz, p_ids bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO detent.job_span (created_at, block, first_id, last_id)
    SELECT t, u.id >> 10, min(u.id), max(u.id) FROM unnest(p_ids) AS u (id) GROUP BY u.id >> 10;
END $$;
