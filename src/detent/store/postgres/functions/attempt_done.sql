-- End a committed attempt as done. The job is locked, running and committed.
CREATE OR REPLACE FUNCTION detent.attempt_done(j detent.job, p_worker text, t timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  n timestamptz := detent.job_now(j, t);
BEGIN
  WITH ended AS (
    UPDATE detent.job u SET state = 'succeeded', ended = u.attempt, finished_at = n, error = NULL
     WHERE u.id = j.id
    RETURNING u.id, u.attempt, u.leased_at, u.started_at, u.committed_at
  ), counted AS (
    INSERT INTO detent.succeeded_batch (job_ids) SELECT array_agg(e.id) FROM ended e HAVING count(*) > 0
  )
  INSERT INTO detent.execution
      (job_id, attempt, worker, leased_at, started_at, committed_at, done_at, outcome, next_state, counted)
    SELECT e.id, e.attempt, p_worker, e.leased_at, e.started_at, e.committed_at, n, 'done', 'succeeded', true FROM ended e;
END $$;
