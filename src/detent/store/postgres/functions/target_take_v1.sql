-- target_take: give targets the jobs that apply or revert them, which are enqueued already in this transaction.
-- takes:   the run, whether to apply, numbers; an object of jobs keyed by number
-- gives:   how many took them
-- locks:   the targets, then the run
-- refuses: nothing: the guards do
CREATE OR REPLACE FUNCTION detent.target_take_v1(p_run_id bigint, p_apply boolean, p_ns integer[], p_jobs jsonb) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t    timestamptz := detent.clock();
  took integer;
BEGIN
  IF p_apply THEN
    UPDATE detent.target g
       SET state = 'queued', apply_job_id = (p_jobs ->> g.n::text)::bigint, queued_at = greatest(t, g.moved_at), moved_at = greatest(t, g.moved_at)
     WHERE g.run_id = p_run_id AND g.n = ANY (p_ns) AND g.state = 'preview';
  ELSE
    UPDATE detent.target g
       SET revert_state = 'reverting', revert_job_id = (p_jobs ->> g.n::text)::bigint, moved_at = greatest(t, g.moved_at)
     WHERE g.run_id = p_run_id AND g.n = ANY (p_ns) AND g.state = 'applied' AND g.revert_job_id IS NULL;
  END IF;
  GET DIAGNOSTICS took = ROW_COUNT;
  RETURN took;
END $$;
