-- target_previewed: what the previews of targets came to. The caller holds a job of the run.
-- takes:   the run, numbers; an object keyed by number: before and after, whether these differ, and why it could not be said
-- gives:   nothing
-- locks:   the targets, by number, then the run
-- refuses: nothing: what is on record stays
CREATE OR REPLACE FUNCTION detent.target_previewed_v1(p_run_id bigint, p_ns integer[], p_came_to jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t timestamptz := greatest(detent.clock(), (SELECT b.moved_at FROM detent.batch_run b WHERE b.id = p_run_id));
BEGIN
  UPDATE detent.target g
     SET before = p_came_to -> g.n::text ->> 0, after = p_came_to -> g.n::text ->> 1,
         changed = (p_came_to -> g.n::text ->> 2)::boolean, preview_error = p_came_to -> g.n::text ->> 3,
         previewed_at = t, moved_at = greatest(g.moved_at, t)
   WHERE g.run_id = p_run_id AND g.n = ANY (p_ns) AND g.previewed_at IS NULL;
  UPDATE detent.batch_run b SET previewed_at = greatest(t, b.moved_at)
   WHERE b.id = p_run_id AND b.planned_at IS NOT NULL AND b.previewed_at IS NULL AND b.previewed + b.preview_failed = b.total;
END $$;
