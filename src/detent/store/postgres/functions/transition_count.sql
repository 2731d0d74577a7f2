-- Count an explicit move of a job for the figures. A pending job has been so since it was due.
CREATE OR REPLACE FUNCTION detent.transition_count(j detent.job, p_to text, t timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO detent.transition_delta (at, task, from_state, to_state, outcome, held_us, waited_us)
    VALUES (t, j.task, j.state, p_to, '', detent.micros_between(CASE j.state
      WHEN 'pending' THEN greatest(j.created_at, j.due_at) WHEN 'running' THEN j.leased_at ELSE j.finished_at END, t), 0);
END $$;
