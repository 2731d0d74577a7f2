-- Batch runs: a change to many targets that a person reads before it is applied.
--
-- batch_run       the run: what it stands at, and its targets counted by what they stand at
-- target          one thing that it changes; follows the jobs that apply and revert it
-- batch_action    what somebody asked for, and how far it is; batch_choice the targets that were named one by one
-- reconciliation  a look at what became of the applied targets; mismatch what was found not to be as it should
--
-- A job of a run takes its target along, and the target its run, in the transaction that moves the job, whoever moves it.
-- target.moved_at and batch_run.moved_at are when that was: a trigger has no clock of its own here.
-- differs: row by row, which costs nothing where rows are changed in place

CREATE TABLE detent_batch_run (
  id                    INTEGER      NOT NULL,
  tenant                TEXT        NOT NULL DEFAULT '',
  batch                 TEXT        NOT NULL,
  payload               TEXT        NOT NULL,
  fingerprint           TEXT        NOT NULL,
  state                 TEXT        NOT NULL DEFAULT 'preview',
  actor                 TEXT        NOT NULL,
  reason                TEXT,
  correlation_id        TEXT,
  metadata              TEXT,
  tolerate_count        INTEGER,
  tolerate_share        REAL,
  total                 INTEGER     NOT NULL DEFAULT 0,
  previewed             INTEGER     NOT NULL DEFAULT 0,
  preview_failed        INTEGER     NOT NULL DEFAULT 0,
  unchanged             INTEGER     NOT NULL DEFAULT 0,
  queued                INTEGER     NOT NULL DEFAULT 0,
  applying              INTEGER     NOT NULL DEFAULT 0,
  applied               INTEGER     NOT NULL DEFAULT 0,
  failed                INTEGER     NOT NULL DEFAULT 0,
  rolled_back           INTEGER     NOT NULL DEFAULT 0,
  outstanding           INTEGER     NOT NULL DEFAULT 0,
  reverting             INTEGER     NOT NULL DEFAULT 0,
  revert_failed         INTEGER     NOT NULL DEFAULT 0,
  stuck                 INTEGER     NOT NULL DEFAULT 0,
  mismatches            INTEGER     NOT NULL DEFAULT 0,
  error                 TEXT,
  created_at            INTEGER NOT NULL,
  planned_at            INTEGER,
  previewed_at          INTEGER,
  queued_at             INTEGER,
  started_at            INTEGER,
  finished_at           INTEGER,
  rollback_requested_at INTEGER,
  rollback_requested_by TEXT,
  rollback_reason       TEXT,
  rolled_back_at        INTEGER,
  reconcile_no          INTEGER     NOT NULL DEFAULT 0,
  reconcile_at          INTEGER,
  reconciled_at         INTEGER,
  moved_at              INTEGER NOT NULL,
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
) STRICT;
CREATE INDEX detent_batch_run_to_reconcile ON detent_batch_run (reconcile_at) WHERE reconcile_at IS NOT NULL;

CREATE TABLE detent_target (
  run_id         INTEGER      NOT NULL,
  n              INTEGER     NOT NULL,
  ref            TEXT        NOT NULL,
  state          TEXT        NOT NULL DEFAULT 'preview',
  before         TEXT,
  after          TEXT,
  changed        INTEGER,
  preview_error  TEXT,
  error          TEXT,
  apply_job_id   INTEGER,
  revert_job_id  INTEGER,
  revert_state   TEXT,
  created_at     INTEGER NOT NULL,
  previewed_at   INTEGER,
  queued_at      INTEGER,
  applied_at     INTEGER,
  rolled_back_at INTEGER,
  moved_at       INTEGER NOT NULL,
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
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX detent_target_apply_job ON detent_target (apply_job_id) WHERE apply_job_id IS NOT NULL;
CREATE UNIQUE INDEX detent_target_revert_job ON detent_target (revert_job_id) WHERE revert_job_id IS NOT NULL;

CREATE TABLE detent_batch_action (
  id         INTEGER      NOT NULL,
  run_id     INTEGER      NOT NULL,
  action     TEXT        NOT NULL,
  actor      TEXT        NOT NULL,
  reason     TEXT,
  metadata   TEXT,
  chosen     INTEGER,
  unchanged  INTEGER     NOT NULL DEFAULT 0,
  job_id     INTEGER      NOT NULL,
  cursor     INTEGER     NOT NULL DEFAULT 0,
  moved      INTEGER     NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  done_at    INTEGER,
  CONSTRAINT batch_action_pkey PRIMARY KEY (id),
  CONSTRAINT batch_action_known CHECK (action IN ('apply', 'retry_failed', 'roll_back')),
  CONSTRAINT batch_action_goes_on CHECK (cursor >= 0 AND moved >= 0)
) STRICT;
CREATE UNIQUE INDEX detent_batch_action_one_open ON detent_batch_action (run_id) WHERE done_at IS NULL;
CREATE INDEX detent_batch_action_of_run ON detent_batch_action (run_id, id);

CREATE TABLE detent_batch_choice (
  action_id INTEGER  NOT NULL,
  n         INTEGER NOT NULL,
  CONSTRAINT batch_choice_pkey PRIMARY KEY (action_id, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE detent_reconciliation (
  run_id     INTEGER      NOT NULL,
  no         INTEGER     NOT NULL,
  planned    INTEGER,
  actor      TEXT        NOT NULL,
  job_id     INTEGER      NOT NULL,
  cursor     INTEGER     NOT NULL DEFAULT 0,
  checked    INTEGER     NOT NULL DEFAULT 0,
  mismatched INTEGER     NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  done_at    INTEGER,
  CONSTRAINT reconciliation_pkey PRIMARY KEY (run_id, no)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX detent_reconciliation_one_open ON detent_reconciliation (run_id) WHERE done_at IS NULL;

CREATE TABLE detent_mismatch (
  run_id      INTEGER      NOT NULL,
  n           INTEGER     NOT NULL,
  no          INTEGER     NOT NULL,
  expected    TEXT,
  actual      TEXT,
  found_at    INTEGER NOT NULL,
  checked_at  INTEGER NOT NULL,
  resolved_at INTEGER,
  CONSTRAINT mismatch_pkey PRIMARY KEY (run_id, n, no)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX detent_mismatch_one_open ON detent_mismatch (run_id, n) WHERE resolved_at IS NULL;

-- The time of a return to pending is that of the attempt's end, which is on record before the job moves, or of the retry.
CREATE TRIGGER detent_job_moves_target AFTER UPDATE OF state ON detent_job
  FOR EACH ROW WHEN NEW.run_id IS NOT NULL AND NEW.state <> OLD.state
BEGIN
  UPDATE detent_target
     SET state = CASE NEW.state WHEN 'pending' THEN 'queued' WHEN 'running' THEN 'applying' WHEN 'succeeded' THEN 'applied' ELSE 'failed' END,
         applied_at = CASE WHEN NEW.state = 'succeeded' THEN max(NEW.finished_at, moved_at) END,
         error = CASE WHEN NEW.state = 'pending' THEN error WHEN NEW.state = 'running' OR NEW.state = 'succeeded' THEN NULL ELSE NEW.error END,
         moved_at = max(moved_at, CASE NEW.state WHEN 'running' THEN NEW.leased_at WHEN 'pending' THEN
           coalesce((SELECT e.aborted_at FROM detent_execution e WHERE OLD.state = 'running' AND e.job_id = NEW.id AND e.attempt = NEW.attempt), NEW.due_at)
           ELSE NEW.finished_at END)
   WHERE apply_job_id = NEW.id AND state <> CASE NEW.state WHEN 'pending' THEN 'queued' WHEN 'running' THEN 'applying' WHEN 'succeeded' THEN 'applied' ELSE 'failed' END;
  UPDATE detent_target
     SET state = CASE WHEN NEW.state = 'succeeded' THEN 'rolled_back' ELSE state END, revert_state = CASE NEW.state WHEN 'succeeded' THEN 'done' WHEN 'pending' THEN 'reverting' WHEN 'running' THEN 'reverting' ELSE 'failed' END,
         rolled_back_at = CASE WHEN NEW.state = 'succeeded' THEN max(NEW.finished_at, moved_at) END,
         error = CASE WHEN NEW.state IN ('pending', 'running', 'succeeded') THEN NULL ELSE NEW.error END,
         moved_at = max(moved_at, coalesce(NEW.finished_at, NEW.leased_at, NEW.created_at))
   WHERE revert_job_id = NEW.id AND revert_state <> CASE NEW.state WHEN 'succeeded' THEN 'done' WHEN 'pending' THEN 'reverting' WHEN 'running' THEN 'reverting' ELSE 'failed' END;
END;

-- What is left are jobs of the run itself: its plan, its preview, its actions. A look that gave up keeps nothing up.
CREATE TRIGGER detent_job_moves_run AFTER UPDATE OF state ON detent_job
  FOR EACH ROW WHEN NEW.run_id IS NOT NULL AND (NEW.state IN ('failed', 'quarantined', 'cancelled')) <> (OLD.state IN ('failed', 'quarantined', 'cancelled'))
BEGIN
  UPDATE detent_batch_run
     SET stuck = stuck + CASE WHEN NEW.state IN ('failed', 'quarantined', 'cancelled') THEN 1 ELSE -1 END,
         error = CASE WHEN NEW.state IN ('failed', 'quarantined', 'cancelled') THEN coalesce(NEW.error, error) WHEN stuck > 1 THEN error END
   WHERE id = NEW.run_id
     AND NOT EXISTS (SELECT 1 FROM detent_target WHERE apply_job_id = NEW.id)
     AND NOT EXISTS (SELECT 1 FROM detent_target WHERE revert_job_id = NEW.id)
     AND NOT EXISTS (SELECT 1 FROM detent_reconciliation WHERE run_id = NEW.run_id AND job_id = NEW.id);
END;

-- The counts of a run are those of its targets.
CREATE TRIGGER detent_target_counts_new AFTER INSERT ON detent_target
BEGIN
  UPDATE detent_batch_run SET total = total + 1, moved_at = max(moved_at, NEW.moved_at) WHERE id = NEW.run_id;
END;

CREATE TRIGGER detent_target_counts AFTER UPDATE OF state, revert_state ON detent_target
  FOR EACH ROW WHEN NEW.state <> OLD.state OR NEW.revert_state IS NOT OLD.revert_state
BEGIN
  UPDATE detent_batch_run
     SET queued = queued + (NEW.state = 'queued') - (OLD.state = 'queued'),
         applying = applying + (NEW.state = 'applying') - (OLD.state = 'applying'),
         applied = applied + (NEW.state = 'applied') - (OLD.state = 'applied'),
         failed = failed + (NEW.state = 'failed') - (OLD.state = 'failed'),
         rolled_back = rolled_back + (NEW.state = 'rolled_back') - (OLD.state = 'rolled_back'),
         reverting = reverting + (NEW.revert_state IS 'reverting') - (OLD.revert_state IS 'reverting'),
         revert_failed = revert_failed + (NEW.revert_state IS 'failed') - (OLD.revert_state IS 'failed'),
         moved_at = max(moved_at, NEW.moved_at)
   WHERE id = NEW.run_id;
END;

CREATE TRIGGER detent_target_counts_previewed AFTER UPDATE OF previewed_at ON detent_target
  FOR EACH ROW WHEN NEW.previewed_at IS NOT NULL AND OLD.previewed_at IS NULL
BEGIN
  UPDATE detent_batch_run
     SET previewed = previewed + (NEW.changed IS NOT NULL), preview_failed = preview_failed + (NEW.preview_error IS NOT NULL),
         unchanged = unchanged + (NEW.changed IS 0), moved_at = max(moved_at, NEW.moved_at)
   WHERE id = NEW.run_id;
END;

-- A run is where its counts say. Each step is on record before it is taken.
CREATE TRIGGER detent_batch_run_settle AFTER UPDATE OF queued, applying, applied, failed, outstanding, reverting, revert_failed ON detent_batch_run
  FOR EACH ROW WHEN
    (NEW.state = 'queued' AND (NEW.applying + NEW.applied + NEW.failed > 0 OR NEW.queued + NEW.outstanding = 0))
    OR (NEW.state = 'applying' AND NEW.queued + NEW.applying + NEW.outstanding = 0)
    OR (NEW.state IN ('partial', 'failed') AND NEW.rollback_requested_at IS NULL
        AND (NEW.queued + NEW.applying + NEW.outstanding > 0 OR NEW.failed = 0 OR (NEW.state = 'partial') <> (NEW.applied + NEW.rolled_back > 0)))
    OR (NEW.rollback_requested_at IS NOT NULL AND NEW.state IN ('applied', 'partial')
        AND NEW.applied + NEW.outstanding + NEW.reverting + NEW.revert_failed = 0)
BEGIN
  INSERT INTO detent_transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, correlation_id, at)
    SELECT NEW.tenant, 'batch_run', CAST(NEW.id AS TEXT), NEW.state, 'applying', CASE NEW.state WHEN 'queued' THEN 'begin' ELSE 'retry_failed' END,
           'system', NEW.correlation_id, NEW.moved_at
     WHERE NEW.state IN ('queued', 'partial', 'failed') AND NEW.rollback_requested_at IS NULL;
  UPDATE detent_batch_run SET state = 'applying', started_at = coalesce(started_at, moved_at), finished_at = NULL, reconcile_at = NULL
   WHERE id = NEW.id AND state IN ('queued', 'partial', 'failed') AND rollback_requested_at IS NULL;
  INSERT INTO detent_transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, correlation_id, at)
    SELECT NEW.tenant, 'batch_run', CAST(NEW.id AS TEXT), 'applying',
           CASE WHEN failed = 0 THEN 'applied' WHEN applied + rolled_back > 0 THEN 'partial' ELSE 'failed' END,
           CASE WHEN failed = 0 THEN 'complete' WHEN applied + rolled_back > 0 THEN 'complete_in_part' ELSE 'fail' END,
           'system', NEW.correlation_id, NEW.moved_at
      FROM detent_batch_run WHERE id = NEW.id AND state = 'applying' AND queued + applying + outstanding = 0;
  UPDATE detent_batch_run
     SET state = CASE WHEN failed = 0 THEN 'applied' WHEN applied + rolled_back > 0 THEN 'partial' ELSE 'failed' END,
         finished_at = moved_at, reconcile_no = 0,
         reconcile_at = CASE WHEN failed = 0 OR applied + rolled_back > 0 THEN moved_at + 300000000 END
   WHERE id = NEW.id AND state = 'applying' AND queued + applying + outstanding = 0;
  INSERT INTO detent_transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, reason, correlation_id, at)
    SELECT NEW.tenant, 'batch_run', CAST(NEW.id AS TEXT), NEW.state, 'rolled_back', 'roll_back', NEW.rollback_requested_by, NEW.rollback_reason,
           NEW.correlation_id, NEW.moved_at
     WHERE NEW.rollback_requested_at IS NOT NULL AND NEW.state IN ('applied', 'partial')
       AND NEW.applied + NEW.outstanding + NEW.reverting + NEW.revert_failed = 0;
  UPDATE detent_batch_run SET state = 'rolled_back', rolled_back_at = moved_at
   WHERE id = NEW.id AND rollback_requested_at IS NOT NULL AND state IN ('applied', 'partial')
     AND applied + outstanding + reverting + revert_failed = 0;
END;

-- The moves of a target, one line each: they are read out of the record of its jobs, as those of a job are out of its executions.
CREATE VIEW detent_target_transition AS
  SELECT g.run_id, g.n AS target_n, b.tenant, 'target' AS entity, NULL AS job_id, g.run_id || '/' || g.n AS entity_id, NULL AS from_state, 'preview' AS to_state,
         'plan' AS trigger, g.created_at AS at, 'worker' AS actor, NULL AS reason, NULL AS metadata, b.correlation_id, 0 AS forced,
         0 AS attempt, 0 AS rank, 0 AS n
    FROM detent_target g JOIN detent_batch_run b ON b.id = g.run_id
  UNION ALL
  SELECT g.run_id, g.n, b.tenant, 'target', NULL, g.run_id || '/' || g.n, 'preview', 'queued', 'queue', g.queued_at, 'client', NULL, NULL, b.correlation_id, 0, 0, 1, 0
    FROM detent_target g JOIN detent_batch_run b ON b.id = g.run_id
   WHERE g.queued_at IS NOT NULL
  UNION ALL
  SELECT g.run_id, g.n, b.tenant, 'target', NULL, g.run_id || '/' || g.n, 'queued', 'applying', 'begin', e.leased_at, e.worker, NULL, NULL, b.correlation_id, 0, e.attempt, 10, 0
    FROM detent_target g JOIN detent_batch_run b ON b.id = g.run_id JOIN detent_execution e ON e.job_id = g.apply_job_id
  UNION ALL
  SELECT g.run_id, g.n, b.tenant, 'target', NULL, g.run_id || '/' || g.n, 'queued', 'applying', 'begin', j.leased_at, coalesce((SELECT l.worker FROM detent_lease l WHERE l.id = j.lease_id), ''), NULL, NULL, b.correlation_id, 0, j.attempt, 10, 0
    FROM detent_target g JOIN detent_batch_run b ON b.id = g.run_id JOIN detent_job j ON j.id = g.apply_job_id
   WHERE j.state = 'running'
  UNION ALL
  SELECT g.run_id, g.n, b.tenant, 'target', NULL, g.run_id || '/' || g.n, 'applying', CASE e.next_state WHEN 'succeeded' THEN 'applied' WHEN 'pending' THEN 'queued' ELSE 'failed' END, CASE e.next_state WHEN 'succeeded' THEN 'complete' WHEN 'pending' THEN 'back_off' ELSE 'fail' END, coalesce(e.done_at, e.aborted_at), CASE WHEN e.outcome = 'expired' THEN 'reaper' ELSE e.worker END, e.outcome, NULL, b.correlation_id, 0, e.attempt, 50, 0
    FROM detent_target g JOIN detent_batch_run b ON b.id = g.run_id JOIN detent_execution e ON e.job_id = g.apply_job_id
  UNION ALL
  SELECT g.run_id, g.n, b.tenant, 'target', NULL, g.run_id || '/' || g.n, 'failed', 'queued', 'retry_failed', l.at, l.actor, l.reason, NULL, b.correlation_id, l.forced, l.attempt, 90, l.n
    FROM detent_target g JOIN detent_batch_run b ON b.id = g.run_id JOIN detent_transition_log l ON l.job_id = g.apply_job_id AND l.trigger <> 'repair'
   WHERE l.from_state IN ('failed', 'quarantined', 'cancelled') AND l.to_state IN ('pending', 'succeeded')
  UNION ALL
  SELECT g.run_id, g.n, b.tenant, 'target', NULL, g.run_id || '/' || g.n, 'queued', 'applying', 'begin', l.at, l.actor, l.reason, NULL, b.correlation_id, l.forced, l.attempt, 91, l.n
    FROM detent_target g JOIN detent_batch_run b ON b.id = g.run_id JOIN detent_transition_log l ON l.job_id = g.apply_job_id AND l.trigger <> 'repair'
   WHERE l.from_state = 'pending' AND l.to_state IN ('cancelled', 'quarantined')
      OR l.from_state IN ('failed', 'quarantined', 'cancelled') AND l.to_state = 'succeeded'
  UNION ALL
  SELECT g.run_id, g.n, b.tenant, 'target', NULL, g.run_id || '/' || g.n, 'applying', CASE l.to_state WHEN 'succeeded' THEN 'applied' ELSE 'failed' END, CASE l.to_state WHEN 'succeeded' THEN 'complete' ELSE 'fail' END, l.at, l.actor, l.reason, NULL, b.correlation_id, l.forced, l.attempt, 92, l.n
    FROM detent_target g JOIN detent_batch_run b ON b.id = g.run_id JOIN detent_transition_log l ON l.job_id = g.apply_job_id AND l.trigger <> 'repair'
   WHERE l.from_state = 'pending' AND l.to_state IN ('cancelled', 'quarantined')
      OR l.from_state IN ('failed', 'quarantined', 'cancelled') AND l.to_state = 'succeeded'
  UNION ALL
  SELECT g.run_id, g.n, b.tenant, 'target', NULL, g.run_id || '/' || g.n, 'applied', 'rolled_back', 'roll_back', g.rolled_back_at, b.rollback_requested_by, b.rollback_reason, NULL, b.correlation_id, 0, j.attempt, 95, 0
    FROM detent_target g JOIN detent_batch_run b ON b.id = g.run_id JOIN detent_job j ON j.id = g.apply_job_id
   WHERE g.rolled_back_at IS NOT NULL
  UNION ALL
  SELECT g.run_id, g.n, b.tenant, 'target', NULL, g.run_id || '/' || g.n, l.from_state, l.to_state, l.trigger, l.at, l.actor, l.reason, NULL, b.correlation_id, l.forced, l.attempt, 96, l.n
    FROM detent_target g JOIN detent_batch_run b ON b.id = g.run_id JOIN detent_transition_log l ON l.job_id IS NULL AND l.entity = 'target' AND l.entity_id = g.run_id || '/' || g.n;

-- As it was, with the targets.
DROP VIEW detent_transition;
CREATE VIEW detent_transition AS
  WITH attempt AS NOT MATERIALIZED (
    SELECT e.job_id, e.attempt, e.worker, e.leased_at, e.started_at, e.committed_at,
           coalesce(e.done_at, e.aborted_at) AS ended_at, e.outcome, e.error, e.next_state,
           j.tenant, j.correlation_id
      FROM detent_execution e JOIN detent_job j ON j.id = e.job_id
    UNION ALL
    SELECT j.id, j.attempt, coalesce((SELECT l.worker FROM detent_lease l WHERE l.id = j.lease_id), ''), j.leased_at, j.started_at, j.committed_at,
           NULL, NULL, NULL, NULL, j.tenant, j.correlation_id
      FROM detent_job j WHERE j.state = 'running'
  )
  SELECT j.tenant, 'job' AS entity, j.id AS job_id, j.id AS entity_id, NULL AS from_state, 'pending' AS to_state,
         'enqueue' AS trigger, j.created_at AS at, 'client' AS actor, NULL AS reason, NULL AS metadata, j.correlation_id,
         0 AS forced, 0 AS attempt, 0 AS rank, 0 AS n
    FROM detent_job j
  UNION ALL
  SELECT tenant, 'job', job_id, job_id, 'pending', 'running', 'claim', leased_at, worker, NULL, NULL, correlation_id, 0, attempt, 10, 0
    FROM attempt
  UNION ALL
  SELECT tenant, 'execution', job_id, job_id || '/' || attempt, NULL, 'leased', 'lease', leased_at, worker, NULL, NULL, correlation_id, 0, attempt, 11, 0
    FROM attempt
  UNION ALL
  SELECT tenant, 'execution', job_id, job_id || '/' || attempt, 'leased', 'in_progress', 'start', started_at, worker, NULL, NULL, correlation_id, 0, attempt, 20, 0
    FROM attempt WHERE started_at IS NOT NULL
  UNION ALL
  SELECT tenant, 'execution', job_id, job_id || '/' || attempt, 'in_progress', 'committed', 'commit', committed_at, worker, NULL, NULL, correlation_id, 0, attempt, 30, 0
    FROM attempt WHERE committed_at IS NOT NULL
  UNION ALL
  SELECT tenant, 'execution', job_id, job_id || '/' || attempt,
         CASE WHEN outcome = 'done' THEN 'committed' WHEN started_at IS NOT NULL THEN 'in_progress' ELSE 'leased' END,
         CASE WHEN outcome = 'done' THEN 'done' ELSE 'aborted' END,
         CASE WHEN outcome = 'done' THEN 'finish' ELSE 'abort' END, ended_at, worker, outcome, NULL, correlation_id, 0, attempt, 40, 0
    FROM attempt WHERE ended_at IS NOT NULL
  UNION ALL
  SELECT tenant, 'job', job_id, job_id, 'running',
         CASE WHEN outcome IN ('error', 'crashed', 'timed_out', 'unknown') OR next_state IN ('failed', 'quarantined')
              THEN CASE WHEN next_state = 'cancelled' THEN 'cancelled' ELSE 'failed' END ELSE next_state END,
         CASE WHEN outcome = 'done' THEN 'finish' WHEN next_state = 'cancelled' THEN 'abort'
              WHEN outcome IN ('error', 'crashed', 'timed_out', 'unknown') OR next_state IN ('failed', 'quarantined') THEN 'fail'
              ELSE 'give_back' END,
         ended_at, CASE WHEN outcome = 'expired' THEN 'reaper' ELSE worker END, outcome, NULL, correlation_id, 0, attempt, 50, 0
    FROM attempt WHERE ended_at IS NOT NULL
  UNION ALL
  SELECT tenant, 'job', job_id, job_id, 'failed', next_state,
         CASE WHEN next_state = 'quarantined' THEN 'give_up' ELSE 'back_off' END,
         ended_at, CASE WHEN outcome = 'expired' THEN 'reaper' ELSE worker END, outcome, NULL, correlation_id, 0, attempt, 51, 0
    FROM attempt
   WHERE ended_at IS NOT NULL
     AND (next_state = 'quarantined' OR (next_state = 'pending' AND outcome IN ('error', 'crashed', 'timed_out', 'unknown')))
  UNION ALL
  SELECT tenant, entity, job_id, entity_id, from_state, to_state, trigger, at, actor, reason, metadata, correlation_id, forced,
         attempt, CASE WHEN entity = 'job' AND from_state = 'running' THEN 45 ELSE 90 END, n
    FROM detent_transition_log
  UNION ALL
  SELECT tenant, entity, job_id, entity_id, from_state, to_state, trigger, at, actor, reason, metadata, correlation_id, forced, attempt, rank, n FROM detent_target_transition;
