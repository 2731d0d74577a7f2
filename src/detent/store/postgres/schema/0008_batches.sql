-- Batch runs: a change to many targets that a person reads before it is applied.
--
-- batch_run       the run: what it stands at, and its targets counted by what they stand at
-- target          one thing that it changes; follows the jobs that apply and revert it
-- batch_action    what somebody asked for, and how far it is; batch_choice the targets that were named one by one
-- reconciliation  a look at what became of the applied targets; mismatch what was found not to be as it should
--
-- A job of a run takes its target along, and the target its run, in the transaction that moves the job, whoever moves it:
-- `targets_follow` for all jobs that one statement moved, `targets_count` for all targets, `batch_run_settle` for the run.
-- So one statement for 500 jobs makes one of the run, not 500. Locks come in the order job, target, run.
-- target.moved_at and batch_run.moved_at are when that was: a trigger has no clock of its own on every database.

CREATE TABLE detent.batch_run (
  id                    bigint      NOT NULL,
  tenant                text        NOT NULL DEFAULT '',
  batch                 text        NOT NULL,
  payload               text        NOT NULL,
  fingerprint           text        NOT NULL,
  state                 text        NOT NULL DEFAULT 'preview',
  actor                 text        NOT NULL,
  reason                text,
  correlation_id        text,
  metadata              text,
  tolerate_count        integer,
  tolerate_share        double precision,
  total                 integer     NOT NULL DEFAULT 0,
  previewed             integer     NOT NULL DEFAULT 0,
  preview_failed        integer     NOT NULL DEFAULT 0,
  unchanged             integer     NOT NULL DEFAULT 0,
  queued                integer     NOT NULL DEFAULT 0,
  applying              integer     NOT NULL DEFAULT 0,
  applied               integer     NOT NULL DEFAULT 0,
  failed                integer     NOT NULL DEFAULT 0,
  rolled_back           integer     NOT NULL DEFAULT 0,
  outstanding           integer     NOT NULL DEFAULT 0,
  reverting             integer     NOT NULL DEFAULT 0,
  revert_failed         integer     NOT NULL DEFAULT 0,
  stuck                 integer     NOT NULL DEFAULT 0,
  mismatches            integer     NOT NULL DEFAULT 0,
  error                 text,
  created_at            timestamptz NOT NULL,
  planned_at            timestamptz,
  previewed_at          timestamptz,
  queued_at             timestamptz,
  started_at            timestamptz,
  finished_at           timestamptz,
  rollback_requested_at timestamptz,
  rollback_requested_by text,
  rollback_reason       text,
  rolled_back_at        timestamptz,
  reconcile_no          integer     NOT NULL DEFAULT 0,
  reconcile_at          timestamptz,
  reconciled_at         timestamptz,
  moved_at              timestamptz NOT NULL,
  CONSTRAINT batch_run_pkey PRIMARY KEY (id),
  CONSTRAINT batch_run_state_known CHECK (state IN ('preview', 'queued', 'applying', 'applied', 'partial', 'failed', 'rolled_back')),
  CONSTRAINT batch_run_counts_possible CHECK (unchanged >= 0 AND unchanged <= previewed AND preview_failed >= 0 AND previewed + preview_failed <= total AND queued >= 0 AND applying >= 0 AND applied >= 0 AND failed >= 0 AND rolled_back >= 0 AND queued + applying + applied + failed + rolled_back <= previewed AND reverting >= 0 AND revert_failed >= 0 AND reverting + revert_failed <= applied AND outstanding BETWEEN 0 AND 1 AND stuck >= 0 AND mismatches >= 0),
  CONSTRAINT batch_run_times_in_order CHECK (queued_at >= created_at AND started_at >= queued_at AND finished_at >= started_at AND rolled_back_at >= rollback_requested_at),
  CONSTRAINT batch_run_preview_is_untouched CHECK (state <> 'preview' OR (queued_at IS NULL AND queued + applying + applied + failed + rolled_back + outstanding = 0)),
  CONSTRAINT batch_run_queued_has_time CHECK (state = 'preview' OR (queued_at IS NOT NULL AND previewed_at IS NOT NULL)),
  CONSTRAINT batch_run_started_has_time CHECK ((state IN ('preview', 'queued')) = (started_at IS NULL)),
  CONSTRAINT batch_run_rest_has_time CHECK ((state IN ('preview', 'queued', 'applying')) = (finished_at IS NULL)),
  CONSTRAINT batch_run_applied_is_whole CHECK (state <> 'applied' OR queued + applying + failed = 0),
  CONSTRAINT batch_run_rolls_back_alone CHECK (rollback_requested_at IS NULL OR (queued + applying = 0 AND state IN ('applied', 'partial', 'rolled_back'))),
  CONSTRAINT batch_run_rolled_back_is_whole CHECK ((state = 'rolled_back') = (rolled_back_at IS NOT NULL) AND (state <> 'rolled_back' OR (rollback_requested_at IS NOT NULL AND applied + outstanding = 0))),
  CONSTRAINT batch_run_rollback_has_actor CHECK ((rollback_requested_at IS NULL) = (rollback_requested_by IS NULL)),
  CONSTRAINT batch_run_tolerates_something CHECK (tolerate_count >= 0 AND tolerate_share BETWEEN 0 AND 1)
) WITH (fillfactor = 50);
CREATE INDEX batch_run_to_reconcile ON detent.batch_run (reconcile_at) WHERE reconcile_at IS NOT NULL;

-- No index on its state, nor on anything else that its life changes but once: so its moves stay on its page.
CREATE TABLE detent.target (
  run_id         bigint      NOT NULL,
  n              integer     NOT NULL,
  ref            text        NOT NULL,
  state          text        NOT NULL DEFAULT 'preview',
  before         text,
  after          text,
  changed        boolean,
  preview_error  text,
  error          text,
  apply_job_id   bigint,
  revert_job_id  bigint,
  revert_state   text,
  created_at     timestamptz NOT NULL,
  previewed_at   timestamptz,
  queued_at      timestamptz,
  applied_at     timestamptz,
  rolled_back_at timestamptz,
  moved_at       timestamptz NOT NULL,
  CONSTRAINT target_pkey PRIMARY KEY (run_id, n),
  CONSTRAINT target_once UNIQUE (run_id, ref),
  CONSTRAINT target_state_known CHECK (state = 'preview' OR state = 'queued' OR state = 'applying' OR state = 'applied' OR state = 'failed' OR state = 'rolled_back'),
  CONSTRAINT target_n_positive CHECK (n >= 1),
  CONSTRAINT target_preview_is_whole CHECK ((previewed_at IS NULL) = (changed IS NULL AND preview_error IS NULL) AND (changed IS NULL OR preview_error IS NULL)),
  CONSTRAINT target_applies_by_a_job CHECK ((state = 'preview') = (apply_job_id IS NULL) AND (apply_job_id IS NULL) = (queued_at IS NULL)),
  CONSTRAINT target_applies_what_was_previewed CHECK (state = 'preview' OR changed IS NOT NULL),
  CONSTRAINT target_applied_has_time CHECK ((state = 'applied' OR state = 'rolled_back') = (applied_at IS NOT NULL)),
  CONSTRAINT target_rolled_back_has_time CHECK ((state = 'rolled_back') = (rolled_back_at IS NOT NULL) AND (state = 'rolled_back') = coalesce(revert_state = 'done', false)),
  CONSTRAINT target_reverts_by_a_job CHECK ((revert_job_id IS NULL) = (revert_state IS NULL) AND (revert_job_id IS NULL OR state = 'applied' OR state = 'rolled_back') AND (revert_state = 'reverting' OR revert_state = 'failed' OR revert_state = 'done'))
) WITH (fillfactor = 60);
CREATE UNIQUE INDEX target_apply_job ON detent.target (apply_job_id) WHERE apply_job_id IS NOT NULL;
CREATE UNIQUE INDEX target_revert_job ON detent.target (revert_job_id) WHERE revert_job_id IS NOT NULL;

CREATE TABLE detent.batch_action (
  id         bigint      NOT NULL,
  run_id     bigint      NOT NULL,
  action     text        NOT NULL,
  actor      text        NOT NULL,
  reason     text,
  metadata   text,
  chosen     integer,
  unchanged  boolean     NOT NULL DEFAULT false,
  job_id     bigint      NOT NULL,
  cursor     integer     NOT NULL DEFAULT 0,
  moved      integer     NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL,
  done_at    timestamptz,
  CONSTRAINT batch_action_pkey PRIMARY KEY (id),
  CONSTRAINT batch_action_known CHECK (action IN ('apply', 'retry_failed', 'roll_back')),
  CONSTRAINT batch_action_goes_on CHECK (cursor >= 0 AND moved >= 0)
);
CREATE UNIQUE INDEX batch_action_one_open ON detent.batch_action (run_id) WHERE done_at IS NULL;
CREATE INDEX batch_action_of_run ON detent.batch_action (run_id, id);
COMMENT ON COLUMN detent.batch_action.chosen IS 'How many targets were named one by one (batch_choice); NULL: all that the action is for.';

CREATE TABLE detent.batch_choice (
  action_id bigint  NOT NULL,
  n         integer NOT NULL,
  CONSTRAINT batch_choice_pkey PRIMARY KEY (action_id, n)
);

CREATE TABLE detent.reconciliation (
  run_id     bigint      NOT NULL,
  no         integer     NOT NULL,
  planned    integer,
  actor      text        NOT NULL,
  job_id     bigint      NOT NULL,
  cursor     integer     NOT NULL DEFAULT 0,
  checked    integer     NOT NULL DEFAULT 0,
  mismatched integer     NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL,
  done_at    timestamptz,
  CONSTRAINT reconciliation_pkey PRIMARY KEY (run_id, no)
);
CREATE UNIQUE INDEX reconciliation_one_open ON detent.reconciliation (run_id) WHERE done_at IS NULL;
COMMENT ON COLUMN detent.reconciliation.planned IS 'The number of the look by plan; NULL for one by hand.';

CREATE TABLE detent.mismatch (
  run_id      bigint      NOT NULL,
  n           integer     NOT NULL,
  no          integer     NOT NULL,
  expected    text,
  actual      text,
  found_at    timestamptz NOT NULL,
  checked_at  timestamptz NOT NULL,
  resolved_at timestamptz,
  CONSTRAINT mismatch_pkey PRIMARY KEY (run_id, n, no)
);
CREATE UNIQUE INDEX mismatch_one_open ON detent.mismatch (run_id, n) WHERE resolved_at IS NULL;

-- Which jobs of runs a statement moves, and from where. It fires before the row changes, so that the end of the statement
-- knows without asking whether there were any; nothing but the end of the statement reads it.
-- An assignment, since plpgsql does that in a fraction of the time of a PERFORM.
CREATE FUNCTION detent.job_moves_target() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  moved text;
BEGIN
  moved := pg_catalog.set_config('detent.moved', pg_catalog.concat(
    pg_catalog.current_setting('detent.moved', true), ',', NEW.id, ':', OLD.state), true);
  RETURN NEW;
END $$;

CREATE TRIGGER job_moves_target BEFORE UPDATE OF state ON detent.job
  FOR EACH ROW WHEN (NEW.run_id IS NOT NULL AND NEW.state IS DISTINCT FROM OLD.state) EXECUTE FUNCTION detent.job_moves_target();

CREATE FUNCTION detent.targets_follow() RETURNS trigger LANGUAGE plpgsql
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
    RETURN NULL;
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
  RETURN NULL;
END $$;

CREATE TRIGGER job_moved AFTER UPDATE OF state ON detent.job
  FOR EACH STATEMENT WHEN (current_setting('detent.moved', true) <> '') EXECUTE FUNCTION detent.targets_follow();

-- The counts of a run are those of its targets: what one statement changed of them, summed up.
CREATE FUNCTION detent.targets_count() RETURNS trigger LANGUAGE plpgsql
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
           coalesce(sum(g.one) FILTER (WHERE g.revert_state = 'failed'), 0)::integer AS revert_failed
      FROM (SELECT n.run_id, n.state, n.revert_state, n.changed, n.preview_error, n.moved_at, 1 AS one FROM new_rows n
            UNION ALL
            SELECT o.run_id, o.state, o.revert_state, o.changed, o.preview_error, o.moved_at, -1 FROM old_rows o) g
     GROUP BY g.run_id ORDER BY g.run_id
  LOOP
    UPDATE detent.batch_run b
       SET previewed = b.previewed + d.previewed, preview_failed = b.preview_failed + d.preview_failed,
           unchanged = b.unchanged + d.unchanged, queued = b.queued + d.queued, applying = b.applying + d.applying,
           applied = b.applied + d.applied, failed = b.failed + d.failed, rolled_back = b.rolled_back + d.rolled_back,
           reverting = b.reverting + d.reverting, revert_failed = b.revert_failed + d.revert_failed,
           moved_at = greatest(b.moved_at, d.moved_at)
     WHERE b.id = d.run_id;
  END LOOP;
  RETURN NULL;
END $$;

CREATE TRIGGER target_counts AFTER UPDATE ON detent.target
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION detent.targets_count();
CREATE TRIGGER target_counts_new AFTER INSERT ON detent.target
  REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION detent.targets_count();

-- A run is where its counts say. Each step is on record before it is taken.
CREATE FUNCTION detent.batch_run_settle() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
DECLARE
  b    detent.batch_run;
  rest text;
BEGIN
  SELECT r.* INTO b FROM detent.batch_run r WHERE r.id = NEW.id;
  rest := CASE WHEN b.failed = 0 THEN 'applied' WHEN b.applied + b.rolled_back > 0 THEN 'partial' ELSE 'failed' END;
  IF b.rollback_requested_at IS NULL
     AND (b.state = 'queued' AND (b.applying + b.applied + b.failed > 0 OR b.queued + b.outstanding = 0)
          OR b.state IN ('partial', 'failed') AND (b.queued + b.applying + b.outstanding > 0 OR b.state <> rest)) THEN
    INSERT INTO detent.transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, correlation_id, at)
      VALUES (b.tenant, 'batch_run', b.id::text, b.state, 'applying', CASE b.state WHEN 'queued' THEN 'begin' ELSE 'retry_failed' END, 'system', b.correlation_id, b.moved_at);
    UPDATE detent.batch_run r
       SET state = 'applying', started_at = coalesce(r.started_at, r.moved_at), finished_at = NULL, reconcile_at = NULL
     WHERE r.id = b.id;
    b.state := 'applying';
  END IF;
  IF b.state = 'applying' AND b.queued + b.applying + b.outstanding = 0 THEN
    INSERT INTO detent.transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, correlation_id, at)
      VALUES (b.tenant, 'batch_run', b.id::text, b.state, rest,
              CASE rest WHEN 'applied' THEN 'complete' WHEN 'partial' THEN 'complete_in_part' ELSE 'fail' END, 'system', b.correlation_id, b.moved_at);
    UPDATE detent.batch_run r
       SET state = rest, finished_at = r.moved_at, reconcile_no = 0,
           reconcile_at = CASE WHEN rest <> 'failed' THEN r.moved_at + interval '5 minutes' END
     WHERE r.id = b.id;
  END IF;
  IF b.rollback_requested_at IS NOT NULL AND b.state IN ('applied', 'partial')
     AND b.applied + b.outstanding + b.reverting + b.revert_failed = 0 THEN
    INSERT INTO detent.transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, reason, correlation_id, at)
      VALUES (b.tenant, 'batch_run', b.id::text, b.state, 'rolled_back', 'roll_back', b.rollback_requested_by, b.rollback_reason, b.correlation_id, b.moved_at);
    UPDATE detent.batch_run r SET state = 'rolled_back', rolled_back_at = r.moved_at WHERE r.id = b.id;
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER batch_run_settle AFTER UPDATE OF queued, applying, applied, failed, outstanding, reverting, revert_failed ON detent.batch_run
  FOR EACH ROW WHEN (
    (NEW.state = 'queued' AND (NEW.applying + NEW.applied + NEW.failed > 0 OR NEW.queued + NEW.outstanding = 0))
    OR (NEW.state = 'applying' AND NEW.queued + NEW.applying + NEW.outstanding = 0)
    OR (NEW.state IN ('partial', 'failed') AND NEW.rollback_requested_at IS NULL
        AND (NEW.queued + NEW.applying + NEW.outstanding > 0 OR NEW.failed = 0 OR (NEW.state = 'partial') <> (NEW.applied + NEW.rolled_back > 0)))
    OR (NEW.rollback_requested_at IS NOT NULL AND NEW.state IN ('applied', 'partial')
        AND NEW.applied + NEW.outstanding + NEW.reverting + NEW.revert_failed = 0)
  ) EXECUTE FUNCTION detent.batch_run_settle();

-- The moves of a target, one line each: they are read out of the record of its jobs, as those of a job are out of its executions.
CREATE VIEW detent.target_transition AS
  SELECT g.run_id, g.n AS target_n, b.tenant, 'target' AS entity, NULL::bigint AS job_id, g.run_id || '/' || g.n AS entity_id, NULL::text AS from_state, 'preview' AS to_state,
         'plan' AS trigger, g.created_at AS at, 'worker' AS actor, NULL::text AS reason, NULL::text AS metadata, b.correlation_id, false AS forced,
         0 AS attempt, 0 AS rank, 0::bigint AS n
    FROM detent.target g JOIN detent.batch_run b ON b.id = g.run_id
  UNION ALL
  SELECT g.run_id, g.n, b.tenant, 'target', NULL::bigint, g.run_id || '/' || g.n, 'preview', 'queued', 'queue', g.queued_at, 'client', NULL, NULL::text, b.correlation_id, false, 0, 1, 0
    FROM detent.target g JOIN detent.batch_run b ON b.id = g.run_id
   WHERE g.queued_at IS NOT NULL
  UNION ALL
  SELECT g.run_id, g.n, b.tenant, 'target', NULL::bigint, g.run_id || '/' || g.n, 'queued', 'applying', 'begin', e.leased_at, e.worker, NULL, NULL::text, b.correlation_id, false, e.attempt, 10, 0
    FROM detent.target g JOIN detent.batch_run b ON b.id = g.run_id JOIN detent.execution e ON e.job_id = g.apply_job_id
  UNION ALL
  SELECT g.run_id, g.n, b.tenant, 'target', NULL::bigint, g.run_id || '/' || g.n, 'queued', 'applying', 'begin', j.leased_at, coalesce((SELECT l.worker FROM detent.lease l WHERE l.id = j.lease_id), ''), NULL, NULL::text, b.correlation_id, false, j.attempt, 10, 0
    FROM detent.target g JOIN detent.batch_run b ON b.id = g.run_id JOIN detent.job j ON j.id = g.apply_job_id
   WHERE j.state = 'running'
  UNION ALL
  SELECT g.run_id, g.n, b.tenant, 'target', NULL::bigint, g.run_id || '/' || g.n, 'applying', CASE e.next_state WHEN 'succeeded' THEN 'applied' WHEN 'pending' THEN 'queued' ELSE 'failed' END, CASE e.next_state WHEN 'succeeded' THEN 'complete' WHEN 'pending' THEN 'back_off' ELSE 'fail' END, coalesce(e.done_at, e.aborted_at), CASE WHEN e.outcome = 'expired' THEN 'reaper' ELSE e.worker END, e.outcome, NULL::text, b.correlation_id, false, e.attempt, 50, 0
    FROM detent.target g JOIN detent.batch_run b ON b.id = g.run_id JOIN detent.execution e ON e.job_id = g.apply_job_id
  UNION ALL
  SELECT g.run_id, g.n, b.tenant, 'target', NULL::bigint, g.run_id || '/' || g.n, 'failed', 'queued', 'retry_failed', l.at, l.actor, l.reason, NULL::text, b.correlation_id, l.forced, l.attempt, 90, l.n
    FROM detent.target g JOIN detent.batch_run b ON b.id = g.run_id JOIN detent.transition_log l ON l.job_id = g.apply_job_id AND l.trigger <> 'repair'
   WHERE l.from_state IN ('failed', 'quarantined', 'cancelled') AND l.to_state IN ('pending', 'succeeded')
  UNION ALL
  SELECT g.run_id, g.n, b.tenant, 'target', NULL::bigint, g.run_id || '/' || g.n, 'queued', 'applying', 'begin', l.at, l.actor, l.reason, NULL::text, b.correlation_id, l.forced, l.attempt, 91, l.n
    FROM detent.target g JOIN detent.batch_run b ON b.id = g.run_id JOIN detent.transition_log l ON l.job_id = g.apply_job_id AND l.trigger <> 'repair'
   WHERE l.from_state = 'pending' AND l.to_state IN ('cancelled', 'quarantined')
      OR l.from_state IN ('failed', 'quarantined', 'cancelled') AND l.to_state = 'succeeded'
  UNION ALL
  SELECT g.run_id, g.n, b.tenant, 'target', NULL::bigint, g.run_id || '/' || g.n, 'applying', CASE l.to_state WHEN 'succeeded' THEN 'applied' ELSE 'failed' END, CASE l.to_state WHEN 'succeeded' THEN 'complete' ELSE 'fail' END, l.at, l.actor, l.reason, NULL::text, b.correlation_id, l.forced, l.attempt, 92, l.n
    FROM detent.target g JOIN detent.batch_run b ON b.id = g.run_id JOIN detent.transition_log l ON l.job_id = g.apply_job_id AND l.trigger <> 'repair'
   WHERE l.from_state = 'pending' AND l.to_state IN ('cancelled', 'quarantined')
      OR l.from_state IN ('failed', 'quarantined', 'cancelled') AND l.to_state = 'succeeded'
  UNION ALL
  SELECT g.run_id, g.n, b.tenant, 'target', NULL::bigint, g.run_id || '/' || g.n, 'applied', 'rolled_back', 'roll_back', g.rolled_back_at, b.rollback_requested_by, b.rollback_reason, NULL::text, b.correlation_id, false, j.attempt, 95, 0
    FROM detent.target g JOIN detent.batch_run b ON b.id = g.run_id JOIN detent.job j ON j.id = g.apply_job_id
   WHERE g.rolled_back_at IS NOT NULL
  UNION ALL
  SELECT g.run_id, g.n, b.tenant, 'target', NULL::bigint, g.run_id || '/' || g.n, l.from_state, l.to_state, l.trigger, l.at, l.actor, l.reason, NULL::text, b.correlation_id, l.forced, l.attempt, 96, l.n
    FROM detent.target g JOIN detent.batch_run b ON b.id = g.run_id JOIN detent.transition_log l ON l.job_id IS NULL AND l.entity = 'target' AND l.entity_id = g.run_id || '/' || g.n;

-- As it was, with the targets.
CREATE OR REPLACE VIEW detent.transition AS
  WITH attempt AS NOT MATERIALIZED (
    SELECT e.job_id, e.attempt, e.worker, e.leased_at, e.started_at, e.committed_at,
           coalesce(e.done_at, e.aborted_at) AS ended_at, e.outcome, e.error, e.next_state,
           j.tenant, j.correlation_id
      FROM detent.execution e JOIN detent.job j ON j.id = e.job_id
    UNION ALL
    SELECT j.id, j.attempt, coalesce((SELECT l.worker FROM detent.lease l WHERE l.id = j.lease_id), ''), j.leased_at, j.started_at, j.committed_at,
           NULL, NULL, NULL, NULL, j.tenant, j.correlation_id
      FROM detent.job j WHERE j.state = 'running'
  )
  SELECT j.tenant, 'job' AS entity, j.id AS job_id, j.id::text AS entity_id, NULL AS from_state, 'pending' AS to_state,
         'enqueue' AS trigger, j.created_at AS at, 'client' AS actor, NULL AS reason, NULL AS metadata, j.correlation_id,
         false AS forced, 0 AS attempt, 0 AS rank, 0::bigint AS n
    FROM detent.job j
  UNION ALL
  SELECT tenant, 'job', job_id, job_id::text, 'pending', 'running', 'claim', leased_at, worker, NULL, NULL, correlation_id, false, attempt, 10, 0
    FROM attempt
  UNION ALL
  SELECT tenant, 'execution', job_id, job_id || '/' || attempt, NULL, 'leased', 'lease', leased_at, worker, NULL, NULL, correlation_id, false, attempt, 11, 0
    FROM attempt
  UNION ALL
  SELECT tenant, 'execution', job_id, job_id || '/' || attempt, 'leased', 'in_progress', 'start', started_at, worker, NULL, NULL, correlation_id, false, attempt, 20, 0
    FROM attempt WHERE started_at IS NOT NULL
  UNION ALL
  SELECT tenant, 'execution', job_id, job_id || '/' || attempt, 'in_progress', 'committed', 'commit', committed_at, worker, NULL, NULL, correlation_id, false, attempt, 30, 0
    FROM attempt WHERE committed_at IS NOT NULL
  UNION ALL
  SELECT tenant, 'execution', job_id, job_id || '/' || attempt,
         CASE WHEN outcome = 'done' THEN 'committed' WHEN started_at IS NOT NULL THEN 'in_progress' ELSE 'leased' END,
         CASE WHEN outcome = 'done' THEN 'done' ELSE 'aborted' END,
         CASE WHEN outcome = 'done' THEN 'finish' ELSE 'abort' END, ended_at, worker, outcome, NULL, correlation_id, false, attempt, 40, 0
    FROM attempt WHERE ended_at IS NOT NULL
  UNION ALL
  SELECT tenant, 'job', job_id, job_id::text, 'running',
         CASE WHEN outcome IN ('error', 'crashed', 'timed_out', 'unknown') OR next_state IN ('failed', 'quarantined')
              THEN CASE WHEN next_state = 'cancelled' THEN 'cancelled' ELSE 'failed' END ELSE next_state END,
         CASE WHEN outcome = 'done' THEN 'finish' WHEN next_state = 'cancelled' THEN 'abort'
              WHEN outcome IN ('error', 'crashed', 'timed_out', 'unknown') OR next_state IN ('failed', 'quarantined') THEN 'fail'
              ELSE 'give_back' END,
         ended_at, CASE WHEN outcome = 'expired' THEN 'reaper' ELSE worker END, outcome, NULL, correlation_id, false, attempt, 50, 0
    FROM attempt WHERE ended_at IS NOT NULL
  UNION ALL
  SELECT tenant, 'job', job_id, job_id::text, 'failed', next_state,
         CASE WHEN next_state = 'quarantined' THEN 'give_up' ELSE 'back_off' END,
         ended_at, CASE WHEN outcome = 'expired' THEN 'reaper' ELSE worker END, outcome, NULL, correlation_id, false, attempt, 51, 0
    FROM attempt
   WHERE ended_at IS NOT NULL
     AND (next_state = 'quarantined' OR (next_state = 'pending' AND outcome IN ('error', 'crashed', 'timed_out', 'unknown')))
  UNION ALL
  SELECT tenant, entity, job_id, entity_id, from_state, to_state, trigger, at, actor, reason, metadata, correlation_id, forced,
         attempt, CASE WHEN entity = 'job' AND from_state = 'running' THEN 45 ELSE 90 END, n
    FROM detent.transition_log
  UNION ALL
  SELECT tenant, entity, job_id, entity_id, from_state, to_state, trigger, at, actor, reason, metadata, correlation_id, forced, attempt, rank, n FROM detent.target_transition;
