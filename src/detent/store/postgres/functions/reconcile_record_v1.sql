-- reconcile_record: what a look has found. The caller holds its job.
-- takes:   the run, the look, from where to where, how many targets were applied, what was wrong of them, whether that is all
-- gives:   whether the look was there
-- locks:   the look, then the run
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.reconcile_record_v1(
  p_run_id bigint, p_no integer, p_from integer, p_to integer, p_checked integer, p_ns integer[], p_expecteds text[],
  p_actuals text[], p_last boolean
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t timestamptz := detent.clock();
BEGIN
  UPDATE detent.reconciliation r
     SET cursor = p_to, checked = r.checked + p_checked, mismatched = r.mismatched + cardinality(p_ns),
         done_at = CASE WHEN p_last THEN greatest(t, r.created_at) END
   WHERE r.run_id = p_run_id AND r.no = p_no AND r.cursor = p_from AND r.done_at IS NULL;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  INSERT INTO detent.mismatch AS m (run_id, n, no, expected, actual, found_at, checked_at)
    SELECT p_run_id, u.n, p_no, u.expected, u.actual, t, t FROM unnest(p_ns, p_expecteds, p_actuals) AS u (n, expected, actual)
    ON CONFLICT (run_id, n) WHERE resolved_at IS NULL DO UPDATE
      SET expected = excluded.expected, actual = excluded.actual, checked_at = excluded.checked_at;
  UPDATE detent.mismatch m SET resolved_at = t
   WHERE m.run_id = p_run_id AND m.n > p_from AND m.n <= p_to AND m.resolved_at IS NULL AND m.n <> ALL (p_ns);
  UPDATE detent.batch_run b
     SET mismatches = (SELECT count(*) FROM detent.mismatch m WHERE m.run_id = p_run_id AND m.resolved_at IS NULL),
         reconciled_at = CASE WHEN p_last THEN t ELSE b.reconciled_at END
   WHERE b.id = p_run_id;
  RETURN true;
END $$;
