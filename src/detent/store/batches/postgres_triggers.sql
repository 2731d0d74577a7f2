-- A target follows its job, and the batch run follows its targets.
-- One statement that moves 500 jobs makes one update of the run, not 500. Locks are taken in the order job, target, run.

-- Note which jobs of runs a statement moves, and from which state. It fires before the row changes, so that the trigger at
-- the end of the statement knows without a query whether there were any.
-- An assignment: in plpgsql it takes a fraction of the time of a PERFORM.
CREATE OR REPLACE FUNCTION detent.job_moves_target() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  moved text;
BEGIN
  moved := pg_catalog.set_config('detent.moved', pg_catalog.concat(
    pg_catalog.current_setting('detent.moved', true), ',', NEW.id, ':', OLD.state), true);
  RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER job_moves_target AFTER UPDATE OF state ON detent.job
  FOR EACH ROW WHEN (NEW.run_id IS NOT NULL AND NEW.state IS DISTINCT FROM OLD.state) EXECUTE FUNCTION detent.job_moves_target();

CREATE OR REPLACE FUNCTION detent.targets_follow() RETURNS void LANGUAGE plpgsql
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
  IF ids IS NULL THEN
    RETURN;
  END IF;
  UPDATE detent.target g
     SET state = CASE j.state WHEN 'pending' THEN 'queued' WHEN 'running' THEN 'applying' WHEN 'succeeded' THEN 'applied' ELSE 'failed' END,
         applied_at = CASE WHEN j.state = 'succeeded' THEN greatest(j.finished_at, g.moved_at) END,
         error = CASE WHEN j.state = 'pending' THEN g.error WHEN j.state = 'running' OR j.state = 'succeeded' THEN NULL
                      ELSE coalesce(j.error, (SELECT 'Not begun: ' || b.critical FROM detent.batch_run b WHERE b.id = g.run_id)) END,
         conflict = CASE WHEN j.state = 'running' OR j.state = 'succeeded' THEN NULL ELSE g.conflict END,
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
         error = CASE WHEN j.state IN ('pending', 'running', 'succeeded') THEN NULL
                      ELSE coalesce(j.error, (SELECT 'Not begun: ' || b.critical FROM detent.batch_run b WHERE b.id = g.run_id)) END,
         conflict = CASE WHEN j.state IN ('pending', 'running', 'succeeded') THEN NULL ELSE g.conflict END,
         moved_at = greatest(g.moved_at, coalesce(j.finished_at, t))
    FROM detent.job j
   WHERE g.revert_job_id = ANY (ids) AND j.id = g.revert_job_id
     AND g.revert_state <> CASE j.state WHEN 'succeeded' THEN 'done' WHEN 'pending' THEN 'reverting' WHEN 'running' THEN 'reverting' ELSE 'failed' END;
  -- A job that ended without success can be retried, and until then the run is stuck.
  -- The remaining jobs belong to the run itself: its plan, its preview, its actions. A failed reconciliation blocks nothing.
  FOR other IN
    SELECT j.run_id, sum(detent.is_job_move('retry', j.state, 'pending')::integer
                         - detent.is_job_move('retry', u.old_state, 'pending')::integer)::integer AS more,
           max(coalesce(j.error, CASE j.state WHEN 'cancelled' THEN 'job ' || u.id || ' (' || j.task || ') was cancelled' END))
             FILTER (WHERE detent.is_job_move('retry', j.state, 'pending')) AS error
      FROM unnest(ids, olds) AS u (id, old_state)
     CROSS JOIN LATERAL (SELECT k.run_id, k.task, k.state, k.error FROM detent.job k WHERE k.id = u.id OFFSET 0) j
     WHERE detent.is_job_move('retry', j.state, 'pending') <> detent.is_job_move('retry', u.old_state, 'pending')
       AND NOT EXISTS (SELECT 1 FROM detent.target g WHERE g.apply_job_id = u.id)
       AND NOT EXISTS (SELECT 1 FROM detent.target g WHERE g.revert_job_id = u.id)
       AND NOT EXISTS (SELECT 1 FROM detent.reconciliation r WHERE r.run_id = j.run_id AND r.job_id = u.id)
     GROUP BY j.run_id ORDER BY j.run_id
  LOOP
    UPDATE detent.batch_run b
       SET stuck = greatest(0, b.stuck + other.more), error = CASE WHEN b.stuck + other.more > 0 THEN coalesce(other.error, b.error) END
     WHERE b.id = other.run_id;
  END LOOP;
END $$;

CREATE OR REPLACE FUNCTION detent.job_moved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF pg_catalog.current_setting('detent.moved', true) OPERATOR(pg_catalog.<>) '' THEN
    PERFORM detent.targets_follow();
    IF pg_catalog.current_setting('detent.nodes', true) OPERATOR(pg_catalog.<>) '' THEN
      PERFORM detent.graphs_follow();
    END IF;
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER job_moved AFTER UPDATE OF state ON detent.job
  FOR EACH STATEMENT EXECUTE FUNCTION detent.job_moved();

-- The counts of a run are those of its targets: add what one statement changed.
CREATE OR REPLACE FUNCTION detent.targets_count() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
DECLARE
  d record;
BEGIN
  IF TG_OP = 'INSERT' THEN
    FOR d IN SELECT g.run_id, count(*)::integer AS total, max(g.moved_at) AS moved_at FROM new_rows g GROUP BY g.run_id ORDER BY g.run_id LOOP
      UPDATE detent.batch_run b SET total = b.total + d.total, moved_at = greatest(b.moved_at, d.moved_at) WHERE b.id = d.run_id;
    END LOOP;
    RETURN NULL;
  END IF;
  FOR d IN
    SELECT g.run_id, max(g.moved_at) AS moved_at,
           coalesce(sum(g.one) FILTER (WHERE g.changed IS NOT NULL), 0)::integer AS previewed,
           coalesce(sum(g.one) FILTER (WHERE g.preview_error IS NOT NULL), 0)::integer AS preview_failed,
           coalesce(sum(g.one) FILTER (WHERE NOT g.changed), 0)::integer AS unchanged,
           coalesce(sum(g.one) FILTER (WHERE g.state = 'queued'), 0)::integer AS queued,
           coalesce(sum(g.one) FILTER (WHERE g.state = 'applying'), 0)::integer AS applying,
           coalesce(sum(g.one) FILTER (WHERE g.state = 'applied'), 0)::integer AS applied,
           coalesce(sum(g.one) FILTER (WHERE g.state = 'failed'), 0)::integer AS failed,
           coalesce(sum(g.one) FILTER (WHERE g.state = 'rolled_back'), 0)::integer AS rolled_back,
           coalesce(sum(g.one) FILTER (WHERE g.revert_state = 'reverting'), 0)::integer AS reverting,
           coalesce(sum(g.one) FILTER (WHERE g.revert_state = 'failed'), 0)::integer AS revert_failed,
           coalesce(sum(g.one) FILTER (WHERE g.conflict IS NOT NULL), 0)::integer AS conflicts
      FROM (SELECT n.run_id, n.state, n.revert_state, n.changed, n.preview_error, n.conflict, n.moved_at, 1 AS one FROM new_rows n
            UNION ALL
            SELECT o.run_id, o.state, o.revert_state, o.changed, o.preview_error, o.conflict, o.moved_at, -1 FROM old_rows o) g
     GROUP BY g.run_id ORDER BY g.run_id
  LOOP
    UPDATE detent.batch_run b
       SET previewed = b.previewed + d.previewed, preview_failed = b.preview_failed + d.preview_failed,
           unchanged = b.unchanged + d.unchanged, queued = b.queued + d.queued, applying = b.applying + d.applying,
           applied = b.applied + d.applied, failed = b.failed + d.failed, rolled_back = b.rolled_back + d.rolled_back,
           reverting = b.reverting + d.reverting, revert_failed = b.revert_failed + d.revert_failed,
           conflicts = b.conflicts + d.conflicts, moved_at = greatest(b.moved_at, d.moved_at)
     WHERE b.id = d.run_id;
  END LOOP;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER target_counts AFTER UPDATE ON detent.target
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION detent.targets_count();

CREATE OR REPLACE TRIGGER target_counts_new AFTER INSERT ON detent.target
  REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION detent.targets_count();

-- The facts of an alert about a run, as JSON.
CREATE OR REPLACE FUNCTION detent.batch_run_facts(b detent.batch_run) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN concat('{"run_id":"', b.id, '","batch":', to_json(b.batch)::text, ',"tenant":', to_json(b.tenant)::text, ',"applied":', b.applied,
                ',"failed":', b.failed, ',"mismatches":', b.mismatches, '}');
END $$;

-- The state of a run follows from its counters. Each step is logged before it is taken. A run that rests with failures raises
-- its alert here, unless their number is tolerated; a run that did well, or was rolled back, resolves it.
CREATE OR REPLACE FUNCTION detent.batch_run_settle() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
DECLARE
  b    detent.batch_run;
  rest text;
  told text;
BEGIN
  SELECT r.* INTO b FROM detent.batch_run r WHERE r.id = NEW.id;
  rest := CASE WHEN b.cancel_requested_at IS NOT NULL THEN 'cancelled' WHEN b.failed = 0 THEN 'applied' WHEN b.critical IS NULL AND b.applied + b.rolled_back > 0 THEN 'partial' ELSE 'failed' END;
  IF b.rollback_requested_at IS NULL
     AND (b.state = 'queued' AND (b.applying > 0 OR NEW.applied + NEW.failed > OLD.applied + OLD.failed OR b.queued + b.outstanding = 0)
          OR b.state IN ('partial', 'failed') AND (b.queued + b.applying + b.outstanding > 0 OR b.state <> rest)
          OR b.state = 'cancelled' AND b.queued + b.applying + b.outstanding > 0) THEN
    INSERT INTO detent.transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, correlation_id, at)
      VALUES (b.tenant, 'batch_run', b.id::text, b.state, 'applying', CASE b.state WHEN 'queued' THEN 'begin' ELSE 'retry_failed' END, 'system', b.correlation_id, b.moved_at);
    UPDATE detent.batch_run r
       SET state = 'applying', started_at = coalesce(r.started_at, r.moved_at), finished_at = NULL, reconcile_at = NULL,
           critical = CASE WHEN b.state = 'queued' THEN r.critical END,
           cancel_requested_at = CASE WHEN b.state = 'queued' THEN r.cancel_requested_at END,
           cancel_requested_by = CASE WHEN b.state = 'queued' THEN r.cancel_requested_by END,
           cancel_reason = CASE WHEN b.state = 'queued' THEN r.cancel_reason END
     WHERE r.id = b.id;
    b.state := 'applying';
  END IF;
  IF b.state = 'applying' AND b.queued + b.applying + b.outstanding = 0 THEN
    INSERT INTO detent.transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, reason, correlation_id, at)
      VALUES (b.tenant, 'batch_run', b.id::text, b.state, rest,
              CASE rest WHEN 'applied' THEN 'complete' WHEN 'partial' THEN 'complete_in_part' WHEN 'cancelled' THEN 'cancel' ELSE 'fail' END,
              coalesce(b.cancel_requested_by, 'system'), CASE rest WHEN 'failed' THEN b.critical WHEN 'cancelled' THEN b.cancel_reason END, b.correlation_id, b.moved_at);
    UPDATE detent.batch_run r
       SET state = rest, finished_at = r.moved_at, reconcile_no = 0,
           reconcile_at = CASE WHEN rest IN ('applied', 'partial') THEN r.moved_at + interval '5 minutes' END
     WHERE r.id = b.id;
    IF rest <> 'cancelled'
       AND (b.failed > coalesce(b.tolerate_count, coalesce(b.tolerate_share, 0) * (b.applied + b.failed)) OR rest <> 'applied' AND b.critical IS NOT NULL) THEN
      told := 'Run ' || b.id || ' of ' || b.batch || ' is ' || rest || ': ' || b.failed || ' of ' || (b.failed + b.applied) || ' targets failed'
              || coalesce('. It was stopped by a critical error: ' || b.critical, '');
      PERFORM detent.alert_raise_v2('run_' || rest, 'run:' || b.id, CASE rest WHEN 'failed' THEN 'critical' ELSE 'warning' END, told,
                                    detent.batch_run_facts(b), b.failed);
      PERFORM detent.alert_resolve_v1(CASE rest WHEN 'failed' THEN 'run_partial' ELSE 'run_failed' END, 'run:' || b.id,
                                      'Run ' || b.id || ' of ' || b.batch || ' is ' || rest);
    ELSE
      PERFORM detent.alert_resolve_v1(p.name, 'run:' || b.id, 'Run ' || b.id || ' of ' || b.batch || ' is ' || rest)
         FROM unnest('{run_failed,run_partial}'::text[]) AS p (name);
    END IF;
  END IF;
  IF b.rollback_requested_at IS NOT NULL AND b.state IN ('applied', 'partial')
     AND b.applied + b.outstanding + b.reverting + b.revert_failed = 0 THEN
    INSERT INTO detent.transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, reason, correlation_id, at)
      VALUES (b.tenant, 'batch_run', b.id::text, b.state, 'rolled_back', 'roll_back', b.rollback_requested_by, b.rollback_reason, b.correlation_id, b.moved_at);
    UPDATE detent.batch_run r SET state = 'rolled_back', rolled_back_at = r.moved_at WHERE r.id = b.id;
    PERFORM detent.alert_resolve_v1(p.name, 'run:' || b.id, 'Run ' || b.id || ' of ' || b.batch || ' is rolled_back')
       FROM unnest('{run_failed,run_partial}'::text[]) AS p (name);
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER batch_run_settle AFTER UPDATE OF queued, applying, applied, failed, outstanding, reverting, revert_failed ON detent.batch_run
  FOR EACH ROW WHEN (
    (NEW.state = 'queued' AND (NEW.applying > 0 OR NEW.applied + NEW.failed > OLD.applied + OLD.failed OR NEW.queued + NEW.outstanding = 0))
    OR (NEW.state = 'applying' AND NEW.queued + NEW.applying + NEW.outstanding = 0)
    OR (NEW.state IN ('partial', 'failed') AND NEW.rollback_requested_at IS NULL
        AND (NEW.queued + NEW.applying + NEW.outstanding > 0 OR NEW.failed = 0
             OR (NEW.critical IS NULL AND (NEW.state = 'partial') <> (NEW.applied + NEW.rolled_back > 0))))
    OR (NEW.state = 'cancelled' AND NEW.queued + NEW.applying + NEW.outstanding > 0)
    OR (NEW.rollback_requested_at IS NOT NULL AND NEW.state IN ('applied', 'partial')
        AND NEW.applied + NEW.outstanding + NEW.reverting + NEW.revert_failed = 0)
  ) EXECUTE FUNCTION detent.batch_run_settle();

-- Targets that no longer match what was applied: an alert while there are any.
CREATE OR REPLACE FUNCTION detent.batch_run_mismatches() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
BEGIN
  IF NEW.mismatches > 0 THEN
    PERFORM detent.alert_raise_v2(
      'mismatches_found', 'run:' || NEW.id, 'warning',
      'Run ' || NEW.id || ' of ' || NEW.batch || ': ' || NEW.mismatches || ' of ' || NEW.applied || ' targets no longer match what was applied',
      detent.batch_run_facts(NEW), NEW.mismatches);
  ELSE
    PERFORM detent.alert_resolve_v1('mismatches_found', 'run:' || NEW.id,
      'Run ' || NEW.id || ' of ' || NEW.batch || CASE WHEN NEW.rollback_requested_at IS NULL THEN ': every target matches what was applied again'
                                                      ELSE ' is rolled back' END);
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER batch_run_mismatches AFTER UPDATE OF mismatches, reconciled_at ON detent.batch_run
  FOR EACH ROW WHEN (NEW.mismatches > OLD.mismatches OR (NEW.mismatches = 0 AND OLD.mismatches > 0)
                     OR (NEW.mismatches > 0 AND NEW.reconciled_at IS DISTINCT FROM OLD.reconciled_at))
  EXECUTE FUNCTION detent.batch_run_mismatches();
