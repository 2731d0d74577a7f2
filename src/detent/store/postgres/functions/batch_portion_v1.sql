-- batch_portion: the targets that an action has to move, in order.
-- takes:   the action, after which number, up to which (null: to the end), how many at most (null: all)
-- gives:   the targets, and how often each was tried
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.batch_portion_v1(p_action_id bigint, p_after integer, p_until integer, p_limit integer)
RETURNS TABLE (target detent.target, attempts integer)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET enable_sort = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
-- No sort: a planner that knows the table when it was empty would sort the whole run for each portion of it.
DECLARE
  a detent.batch_action;
BEGIN
  SELECT c.* INTO a FROM detent.batch_action c WHERE c.id = p_action_id;
  IF a.chosen IS NOT NULL THEN
    RETURN QUERY
      SELECT g, coalesce((SELECT j.attempt FROM detent.job j WHERE j.id = g.apply_job_id), 0)
        FROM detent.batch_choice c JOIN detent.target g ON g.run_id = a.run_id AND g.n = c.n
       WHERE c.action_id = p_action_id AND c.n > p_after AND c.n <= coalesce(p_until, 2147483647)
         AND g.state = CASE a.action WHEN 'apply' THEN 'preview' ELSE 'failed' END
       ORDER BY c.n LIMIT p_limit;
  ELSE
    RETURN QUERY
      SELECT g, coalesce((SELECT j.attempt FROM detent.job j WHERE j.id = g.apply_job_id), 0)
        FROM detent.target g
       WHERE g.run_id = a.run_id AND g.n > p_after AND g.n <= coalesce(p_until, 2147483647)
         AND CASE a.action WHEN 'apply' THEN g.state = 'preview' AND g.changed IS NOT NULL AND (g.changed OR a.unchanged)
                           WHEN 'retry_failed' THEN g.state = 'failed'
                           ELSE g.state = 'applied' AND (g.revert_job_id IS NULL OR g.revert_state = 'failed') END
       ORDER BY g.n LIMIT p_limit;
  END IF;
END $$;
