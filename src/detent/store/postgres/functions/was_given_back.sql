-- Whether this attempt ended without harm and did not count: it was released, snoozed or throttled.
CREATE OR REPLACE FUNCTION detent.was_given_back(p_job_id bigint, p_attempt integer) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN EXISTS (SELECT 1 FROM detent.execution e
                  WHERE e.job_id = p_job_id AND e.attempt = p_attempt AND NOT e.counted
                    AND e.outcome IN ('released', 'snoozed', 'throttled'));
END $$;
