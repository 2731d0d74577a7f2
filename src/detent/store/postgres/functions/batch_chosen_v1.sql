-- batch_chosen: what an action has to move, as a step of it sees it.
-- takes:   the action, after which number, up to which
-- gives:   the numbers of the targets that need a job of their own, and the jobs that are to be retried
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.batch_chosen_v1(p_action_id bigint, p_after integer, p_until integer)
RETURNS TABLE (need integer[], again bigint[])
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  doing text := (SELECT a.action FROM detent.batch_action a WHERE a.id = p_action_id);
BEGIN
  SELECT array_agg((p.target).n ORDER BY (p.target).n) FILTER (
           WHERE doing = 'apply' OR doing = 'roll_back' AND (p.target).revert_job_id IS NULL),
         array_agg(CASE doing WHEN 'retry_failed' THEN (p.target).apply_job_id ELSE (p.target).revert_job_id END) FILTER (
           WHERE doing = 'retry_failed' OR doing = 'roll_back' AND (p.target).revert_job_id IS NOT NULL)
    INTO need, again
    FROM detent.batch_portion_v1(p_action_id, p_after, p_until, NULL) p;
  RETURN NEXT;
END $$;
