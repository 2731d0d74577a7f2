-- reconcile_due: runs whose reconciliation is due.
-- takes:   how many
-- gives:   runs, the longest due first
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.reconcile_due_v1(p_limit integer) RETURNS SETOF detent.batch_run
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY
    SELECT b.* FROM detent.batch_run b
     WHERE b.reconcile_at IS NOT NULL AND b.reconcile_at <= detent.clock() ORDER BY b.reconcile_at, b.id LIMIT p_limit;
END $$;

-- reconcile_open: the reconciliation of a run that is under way. One whose job gave up is ended. The caller has locked the run.
-- takes:   the run
-- gives:   its number, null if there is none
-- locks:   the reconciliation
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.reconcile_open_v1(p_run_id bigint) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  look detent.reconciliation;
BEGIN
  SELECT r.* INTO look FROM detent.reconciliation r WHERE r.run_id = p_run_id AND r.done_at IS NULL FOR UPDATE;
  IF look.no IS NOT NULL AND NOT EXISTS (
       SELECT 1 FROM detent.job j WHERE j.id = look.job_id AND j.state IN ('pending', 'running')) THEN
    UPDATE detent.reconciliation r SET done_at = greatest(detent.clock(), r.created_at)
     WHERE r.run_id = p_run_id AND r.no = look.no;
    RETURN NULL;
  END IF;
  RETURN look.no;
END $$;

-- reconcile_begin: insert a reconciliation. The caller has locked the run and enqueues the job in the same transaction.
-- takes:   the run, the number in the plan (null: by hand), who, the job; the next in the plan, and when it is due
-- gives:   its number
-- locks:   the run
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.reconcile_begin_v1(
  p_run_id bigint, p_planned integer, p_actor text, p_job_id bigint, p_next integer, p_next_at timestamptz
) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t    timestamptz := detent.clock();
  made integer := 1 + coalesce((SELECT max(r.no) FROM detent.reconciliation r WHERE r.run_id = p_run_id), 0);
BEGIN
  INSERT INTO detent.reconciliation (run_id, no, planned, actor, job_id, created_at)
    VALUES (p_run_id, made, p_planned, p_actor, p_job_id, t);
  UPDATE detent.batch_run b SET reconcile_no = p_next, reconcile_at = p_next_at WHERE p_planned IS NOT NULL AND b.id = p_run_id;
  RETURN made;
END $$;

-- reconcile_record: record what a reconciliation found. The caller holds its job.
-- takes:   the run, the reconciliation, from which cursor to which, how many targets it read, the mismatches, whether it is the end
-- gives:   whether the cursor was there
-- locks:   the reconciliation, then the run
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

-- reconciliation_list: the reconciliations of a run, newest first.
-- takes:   the run, how many; the number of one of them (null is any)
-- gives:   reconciliations
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.reconciliation_list_v1(p_run_id bigint, p_limit integer, p_no integer DEFAULT NULL)
RETURNS SETOF detent.reconciliation
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY
    SELECT r.* FROM detent.reconciliation r
     WHERE r.run_id = p_run_id AND (p_no IS NULL OR r.no = p_no) ORDER BY r.no DESC LIMIT p_limit;
END $$;

-- mismatch_list: mismatches that reconciliations of a run found.
-- takes:   the run, whether only open ones, after which target, how many
-- gives:   mismatches with their refs, by target, then by reconciliation
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.mismatch_list_v1(p_run_id bigint, p_open boolean, p_after_n integer, p_limit integer)
RETURNS TABLE (mismatch detent.mismatch, ref text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY
    SELECT m, g.ref FROM detent.mismatch m JOIN detent.target g ON g.run_id = m.run_id AND g.n = m.n
     WHERE m.run_id = p_run_id AND m.n > p_after_n AND (NOT p_open OR m.resolved_at IS NULL)
     ORDER BY m.n, m.no LIMIT p_limit;
END $$;
