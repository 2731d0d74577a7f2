-- oldest code: 17
-- What is left of the triggers that ask before a job's row changes, and CHECKs that take less to read.
--
-- While one row trigger asks before an UPDATE, PostgreSQL locks every row first: so the others of the table move too. The
-- text of every CHECK of a table is read anew in each statement that writes to it: so they say the same with fewer words,
-- all of them together: that of the open attempt says by how much ended is behind, and what is left for the order is spared.
-- `detent verify` and `detent repair` of an older Detent take these for missing: use those of this one.

ALTER TABLE detent.job
  DROP CONSTRAINT job_state_known,
  DROP CONSTRAINT job_running_has_open_attempt,
  DROP CONSTRAINT job_attempts_in_order,
  DROP CONSTRAINT job_finished_has_time,
  DROP CONSTRAINT job_commit_is_of_a_running_or_succeeded_job,
  DROP CONSTRAINT job_effect_told_by_known,
  ADD CONSTRAINT job_state_known CHECK (state = ANY ('{pending,running,succeeded,failed,quarantined,cancelled}'::text[])),
  ADD CONSTRAINT job_running_has_open_attempt CHECK (attempt - ended = (state = 'running')::integer),
  ADD CONSTRAINT job_attempts_in_order CHECK (spared >= 0 AND spared <= attempt),
  ADD CONSTRAINT job_finished_has_time CHECK ((state = ANY ('{pending,running}'::text[])) = (finished_at IS NULL)),
  ADD CONSTRAINT job_commit_is_of_a_running_or_succeeded_job CHECK (committed_at IS NULL OR state = ANY ('{running,succeeded}'::text[])),
  ADD CONSTRAINT job_effect_told_by_known CHECK (effect_told_by = ANY ('{probe,marker}'::text[]));

ALTER TABLE detent.execution
  DROP CONSTRAINT execution_outcome_known,
  DROP CONSTRAINT execution_next_state_known,
  ADD CONSTRAINT execution_outcome_known CHECK (outcome = ANY ('{done,error,expired,crashed,cancelled,released,snoozed,throttled,timed_out,unknown}'::text[])),
  ADD CONSTRAINT execution_next_state_known CHECK (next_state = ANY ('{pending,succeeded,failed,quarantined,cancelled}'::text[]));

DROP TRIGGER job_effect ON detent.job;
CREATE TRIGGER job_effect AFTER UPDATE OF effect_told_by ON detent.job
  FOR EACH ROW WHEN (NEW.effect_told_by IS DISTINCT FROM OLD.effect_told_by
    AND (NEW.effect_told_by IS NULL OR OLD.state <> 'running' OR NEW.state <> 'running' OR NEW.started_at IS NULL))
  EXECUTE FUNCTION detent.effect_guard();

DROP TRIGGER job_ops_run ON detent.job;
CREATE TRIGGER job_ops_run AFTER UPDATE OF state, started_at ON detent.job
  FOR EACH ROW WHEN (NEW.task = 'ops.run') EXECUTE FUNCTION detent.ops_run_moves();

DROP TRIGGER job_result ON detent.job;
CREATE TRIGGER job_result AFTER UPDATE OF result_dropped_at ON detent.job
  FOR EACH ROW WHEN (NEW.result_dropped_at IS DISTINCT FROM OLD.result_dropped_at)
  EXECUTE FUNCTION detent.result_guard();

-- Which jobs of runs a statement has moved, and from where: row by row, and then, at the end of the statement, all at once.
-- Whether there were any is known only then, so that is asked by a function that has nothing to set up.
DROP TRIGGER job_moves_target ON detent.job;
CREATE TRIGGER job_moves_target AFTER UPDATE OF state ON detent.job
  FOR EACH ROW WHEN (NEW.run_id IS NOT NULL AND NEW.state IS DISTINCT FROM OLD.state) EXECUTE FUNCTION detent.job_moves_target();

DROP TRIGGER job_moved ON detent.job;
DROP FUNCTION detent.targets_follow();
CREATE FUNCTION detent.targets_follow() RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t     timestamptz := detent.clock();
  ids   bigint[];
  olds  text[];
  led   integer;
  other record;
BEGIN
  SELECT array_agg(m.id), array_agg(m.old_state) INTO ids, olds
    FROM (SELECT DISTINCT split_part(u.item, ':', 1)::bigint AS id, split_part(u.item, ':', 2) AS old_state
            FROM unnest(string_to_array(current_setting('detent.moved'), ',')) AS u (item) WHERE u.item <> '') m;
  PERFORM set_config('detent.moved', '', true);
  UPDATE detent.target g
     SET state = CASE j.state WHEN 'pending' THEN 'queued' WHEN 'running' THEN 'applying' WHEN 'succeeded' THEN 'applied' ELSE 'failed' END,
         applied_at = CASE WHEN j.state = 'succeeded' THEN greatest(j.finished_at, g.moved_at) END,
         error = CASE WHEN j.state = 'pending' THEN g.error WHEN j.state = 'running' OR j.state = 'succeeded' THEN NULL ELSE j.error END,
         moved_at = greatest(g.moved_at, CASE j.state WHEN 'pending' THEN least(t, j.due_at) WHEN 'running' THEN j.leased_at ELSE j.finished_at END)
    FROM detent.job j
   WHERE g.apply_job_id = ANY (ids) AND j.id = g.apply_job_id
     AND g.state <> CASE j.state WHEN 'pending' THEN 'queued' WHEN 'running' THEN 'applying' WHEN 'succeeded' THEN 'applied' ELSE 'failed' END;
  GET DIAGNOSTICS led = ROW_COUNT;
  IF led = cardinality(ids) THEN
    RETURN;
  END IF;
  UPDATE detent.target g
     SET state = CASE WHEN j.state = 'succeeded' THEN 'rolled_back' ELSE g.state END,
         revert_state = CASE j.state WHEN 'succeeded' THEN 'done' WHEN 'pending' THEN 'reverting' WHEN 'running' THEN 'reverting' ELSE 'failed' END,
         rolled_back_at = CASE WHEN j.state = 'succeeded' THEN greatest(j.finished_at, g.moved_at) END,
         error = CASE WHEN j.state IN ('pending', 'running', 'succeeded') THEN NULL ELSE j.error END,
         moved_at = greatest(g.moved_at, coalesce(j.finished_at, t))
    FROM detent.job j
   WHERE g.revert_job_id = ANY (ids) AND j.id = g.revert_job_id
     AND g.revert_state <> CASE j.state WHEN 'succeeded' THEN 'done' WHEN 'pending' THEN 'reverting' WHEN 'running' THEN 'reverting' ELSE 'failed' END;
  -- What is left are jobs of the run itself: its plan, its preview, its actions. A look that gave up keeps nothing up.
  FOR other IN
    SELECT j.run_id, sum((j.state IN ('failed', 'quarantined', 'cancelled'))::integer
                         - (u.old_state IN ('failed', 'quarantined', 'cancelled'))::integer)::integer AS more,
           max(j.error) FILTER (WHERE j.state IN ('failed', 'quarantined', 'cancelled')) AS error
      FROM unnest(ids, olds) AS u (id, old_state)
     CROSS JOIN LATERAL (SELECT k.run_id, k.state, k.error FROM detent.job k WHERE k.id = u.id OFFSET 0) j
     WHERE (j.state IN ('failed', 'quarantined', 'cancelled')) <> (u.old_state IN ('failed', 'quarantined', 'cancelled'))
       AND NOT EXISTS (SELECT 1 FROM detent.target g WHERE g.apply_job_id = u.id)
       AND NOT EXISTS (SELECT 1 FROM detent.target g WHERE g.revert_job_id = u.id)
       AND NOT EXISTS (SELECT 1 FROM detent.reconciliation r WHERE r.run_id = j.run_id AND r.job_id = u.id)
     GROUP BY j.run_id ORDER BY j.run_id
  LOOP
    UPDATE detent.batch_run b
       SET stuck = b.stuck + other.more, error = CASE WHEN b.stuck + other.more > 0 THEN coalesce(other.error, b.error) END
     WHERE b.id = other.run_id;
  END LOOP;
END $$;

CREATE FUNCTION detent.job_moved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF pg_catalog.current_setting('detent.moved', true) OPERATOR(pg_catalog.<>) '' THEN
    PERFORM detent.targets_follow();
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER job_moved AFTER UPDATE OF state ON detent.job
  FOR EACH STATEMENT EXECUTE FUNCTION detent.job_moved();
