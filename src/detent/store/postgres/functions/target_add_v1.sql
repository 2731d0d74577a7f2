-- target_add: new targets of a run. The caller has its lock, and has looked which of them are there.
-- takes:   the run, numbers and refs of those that are not, and whether these are the last
-- gives:   nothing
-- locks:   the new rows, the run
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.target_add_v1(p_run_id bigint, p_ns integer[], p_refs text[], p_last boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t timestamptz := greatest(detent.clock(), (SELECT b.moved_at FROM detent.batch_run b WHERE b.id = p_run_id));
BEGIN
  INSERT INTO detent.target (run_id, n, ref, created_at, moved_at)
    SELECT p_run_id, u.n, u.ref, t, t FROM unnest(p_ns, p_refs) AS u (n, ref);
  UPDATE detent.batch_run b SET planned_at = t WHERE p_last AND b.id = p_run_id AND b.planned_at IS NULL;
  UPDATE detent.batch_run b SET previewed_at = t
   WHERE b.id = p_run_id AND b.planned_at IS NOT NULL AND b.previewed_at IS NULL AND b.previewed + b.preview_failed = b.total;
END $$;
