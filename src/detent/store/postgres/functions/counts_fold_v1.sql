-- counts_fold: add what has changed to the counts of jobs at rest.
-- takes:   how many moves at most, and how many batches of jobs that have succeeded
-- gives:   how many of both were added
-- locks:   the changes it adds, and their counts, in order; it passes over changes that others hold
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.counts_fold_v1(p_limit integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  folded integer;
BEGIN
  WITH moved AS (
    DELETE FROM detent.finished_delta WHERE n = ANY (ARRAY(
      SELECT d.n FROM detent.finished_delta d ORDER BY d.n LIMIT p_limit FOR UPDATE SKIP LOCKED))
    RETURNING tenant, queue, task, state, jobs
  ), ended AS (
    DELETE FROM detent.succeeded_batch WHERE n = ANY (ARRAY(
      SELECT b.n FROM detent.succeeded_batch b ORDER BY b.n LIMIT p_limit FOR UPDATE SKIP LOCKED))
    RETURNING job_ids
  ), added AS (
    INSERT INTO detent.finished_count AS c (tenant, queue, task, state, jobs)
      SELECT g.tenant, g.queue, g.task, g.state, sum(g.jobs)
        FROM (SELECT m.* FROM moved m
              UNION ALL
              SELECT j.tenant, j.queue, j.task, j.state, count(*)
                FROM ended e CROSS JOIN LATERAL unnest(e.job_ids) AS u (job_id)
                JOIN detent.job j ON j.id = u.job_id AND j.state = 'succeeded'
               GROUP BY j.tenant, j.queue, j.task, j.state) g
       GROUP BY g.tenant, g.queue, g.task, g.state ORDER BY g.tenant, g.queue, g.task, g.state
      ON CONFLICT (tenant, queue, task, state) DO UPDATE SET jobs = c.jobs + excluded.jobs
  )
  SELECT (SELECT count(*) FROM moved) + (SELECT count(*) FROM ended) INTO folded;
  RETURN folded;
END $$;
