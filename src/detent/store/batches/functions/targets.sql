-- target_places: which of these refs and numbers are taken.
-- takes:   the run, the first number, the refs of it and the following
-- gives:   the targets that have one of them
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.target_places_v1(p_run_id bigint, p_first_n integer, p_refs text[]) RETURNS TABLE (n integer, ref text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
  -- One look-up for each ref: a planner with statistics of an empty table would scan the run.
  RETURN QUERY
    SELECT found.n, found.ref FROM unnest(p_refs) AS u (ref)
     CROSS JOIN LATERAL (SELECT g.n, g.ref FROM detent.target g WHERE g.run_id = p_run_id AND g.ref = u.ref OFFSET 0) found
    UNION
    SELECT g.n, g.ref FROM detent.target g
     WHERE g.run_id = p_run_id AND g.n BETWEEN p_first_n AND p_first_n + cardinality(p_refs) - 1;
END $$;

-- target_add: insert targets of a run, which the caller has locked.
-- takes:   the run, numbers and refs of the new targets, and whether these are the last
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

-- target_previewed: record the previews of targets. The caller holds a job of the run.
-- takes:   the run, numbers; an object keyed by number: before and after, whether these differ, and the error
-- gives:   nothing
-- locks:   the targets, by number, then the run
-- refuses: nothing: a recorded preview stays
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

-- target_named: targets by their refs, as an action asks for them.
-- takes:   the run, the refs
-- gives:   number, ref, state, and whether it could be previewed
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.target_named_v1(p_run_id bigint, p_refs text[])
RETURNS TABLE (n integer, ref text, state text, is_previewed boolean)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    SELECT found.n, found.ref, found.state, found.changed IS NOT NULL FROM (SELECT DISTINCT r.ref FROM unnest(p_refs) AS r (ref)) u
     CROSS JOIN LATERAL (SELECT g.* FROM detent.target g WHERE g.run_id = p_run_id AND g.ref = u.ref OFFSET 0) found
     ORDER BY found.n;
END $$;

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

-- target_conflict: record that others have changed a target. The caller holds the job that applies or reverts it.
-- takes:   the run, the job, what was found in place of the expected value
-- gives:   nothing
-- locks:   the target, then the run
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.target_conflict_v1(p_run_id bigint, p_job_id bigint, p_found text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  UPDATE detent.target g SET conflict = p_found WHERE g.apply_job_id = p_job_id AND g.run_id = p_run_id AND g.state = 'applying';
  UPDATE detent.target g SET conflict = p_found WHERE g.revert_job_id = p_job_id AND g.run_id = p_run_id AND g.state = 'applied';
END $$;

-- target_list: targets of a run, in the order of the plan.
-- takes:   the run, state and changed (null is any), refs (null is any), after which number, how many
-- gives:   targets, and how often each was tried
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.target_list_v1(
  p_run_id bigint, p_state text, p_changed boolean, p_refs text[], p_after_n integer, p_limit integer
) RETURNS TABLE (target detent.target, attempts integer)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET enable_sort = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
-- No sort: a planner with statistics of an empty table would sort the whole run for each portion.
BEGIN
  IF p_refs IS NULL THEN
    RETURN QUERY
      SELECT g, coalesce((SELECT j.attempt FROM detent.job j WHERE j.id = g.apply_job_id), 0)
        FROM detent.target g
       WHERE g.run_id = p_run_id AND g.n > p_after_n AND (p_state IS NULL OR g.state = p_state)
         AND (p_changed IS NULL OR g.changed = p_changed)
       ORDER BY g.n LIMIT p_limit;
  ELSE
    RETURN QUERY
      SELECT g.whole, coalesce((SELECT j.attempt FROM detent.job j WHERE j.id = (g.whole).apply_job_id), 0)
        FROM (SELECT DISTINCT r.ref FROM unnest(p_refs) AS r (ref)) u
       CROSS JOIN LATERAL (SELECT k AS whole, k.n, k.state, k.changed
                             FROM detent.target k WHERE k.run_id = p_run_id AND k.ref = u.ref OFFSET 0) g
       WHERE g.n > p_after_n AND (p_state IS NULL OR g.state = p_state) AND (p_changed IS NULL OR g.changed = p_changed)
       ORDER BY g.n LIMIT p_limit;
  END IF;
END $$;
