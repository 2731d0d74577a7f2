-- target_previewed: what the previews of targets came to. The caller holds a job of the run.
-- takes:   the run; numbers, before and after, whether these differ, and why it could not be said
-- gives:   nothing
-- locks:   the targets, by number, then the run
-- refuses: nothing: what is on record stays
CREATE OR REPLACE FUNCTION detent.target_previewed_v1(
  p_run_id bigint, p_ns integer[], p_befores text[], p_afters text[], p_changeds boolean[], p_errors text[]
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t timestamptz := greatest(detent.clock(), (SELECT b.moved_at FROM detent.batch_run b WHERE b.id = p_run_id));
BEGIN
  UPDATE detent.target g
     SET before = u.before, after = u.after, changed = CASE WHEN u.error IS NULL THEN u.changed END, preview_error = u.error,
         previewed_at = t, moved_at = greatest(g.moved_at, t)
    FROM unnest(p_ns, p_befores, p_afters, p_changeds, p_errors) AS u (n, before, after, changed, error)
   WHERE g.run_id = p_run_id AND g.n = u.n AND g.previewed_at IS NULL;
  UPDATE detent.batch_run b SET previewed_at = greatest(t, b.moved_at)
   WHERE b.id = p_run_id AND b.planned_at IS NOT NULL AND b.previewed_at IS NULL AND b.previewed + b.preview_failed = b.total;
END $$;
