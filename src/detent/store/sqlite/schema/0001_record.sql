-- The record: what Detent keeps, and the only copy of it.
--
-- job          the projection: what a job is now, with the execution in flight in its own columns
-- execution    one row per ended attempt, inserted once, never updated
-- transition_log  explicit moves, append-only; with execution it gives every state by folding
-- lane, ready, waiting   what may be claimed; a pending job has exactly one row in ready or waiting
-- lease        one row per claim call; the reaper looks for work only here
-- event, dead, job_key, queue, horizon, migration
--
-- JSON is kept as the text that came through the door, so that both databases give back the same letters.
-- What is known is a chain of ORs, commonest first: SQLite builds a table of a longer list for every row that it checks.
-- differs: times are whole microseconds since 1970 in UTC, booleans 0 or 1, the ids of a lease a JSON array; tables whose
-- key is not one number are stored in it (WITHOUT ROWID). Everything carries the prefix detent_, since the user's own
-- tables are in the same file.

CREATE TABLE detent_migration (
  version     INTEGER     NOT NULL,
  name        TEXT        NOT NULL,
  checksum    TEXT        NOT NULL,
  oldest_code INTEGER     NOT NULL,
  applied_at  INTEGER NOT NULL,
  CONSTRAINT migration_pkey PRIMARY KEY (version)
) STRICT;

-- differs: a row where PostgreSQL has a sequence.
CREATE TABLE detent_ids (
  next INTEGER NOT NULL
) STRICT;
INSERT INTO detent_ids (next) VALUES (1);

CREATE TABLE detent_job (
  id                  INTEGER      NOT NULL,
  tenant              TEXT        NOT NULL DEFAULT '',
  task                TEXT        NOT NULL,
  queue               TEXT        NOT NULL DEFAULT 'default',
  priority            INTEGER    NOT NULL DEFAULT 0,
  due_at              INTEGER NOT NULL,
  expires_at          INTEGER,
  payload             TEXT        NOT NULL,
  metadata            TEXT,
  correlation_id      TEXT,
  traceparent         TEXT,
  run_id              INTEGER,
  nonce               INTEGER      NOT NULL,
  created_at          INTEGER NOT NULL,
  attempts_max        INTEGER     NOT NULL,
  dead_letter         INTEGER     NOT NULL DEFAULT 1,
  idempotent          INTEGER     NOT NULL DEFAULT 1,
  limit_key           TEXT,
  state               TEXT        NOT NULL DEFAULT 'pending',
  attempt             INTEGER     NOT NULL DEFAULT 0,
  spared              INTEGER     NOT NULL DEFAULT 0,
  ended               INTEGER     NOT NULL DEFAULT 0,
  result              TEXT,
  error               TEXT,
  finished_at         INTEGER,
  cancel_requested_at INTEGER,
  cancel_requested_by TEXT,
  cancel_reason       TEXT,
  lease_id            INTEGER,
  leased_at           INTEGER,
  started_at          INTEGER,
  committed_at        INTEGER,
  CONSTRAINT job_pkey PRIMARY KEY (id),
  CONSTRAINT job_state_known CHECK (state = 'pending' OR state = 'running' OR state = 'succeeded' OR state = 'failed' OR state = 'quarantined' OR state = 'cancelled'),
  CONSTRAINT job_running_has_open_attempt CHECK ((state = 'running') = (ended < attempt)),
  CONSTRAINT job_attempts_in_order CHECK (ended BETWEEN attempt - 1 AND attempt AND spared BETWEEN 0 AND attempt AND attempt >= 0),
  CONSTRAINT job_priority_is_small CHECK (priority BETWEEN -32768 AND 32767), -- differs: a smallint there
  CONSTRAINT job_booleans CHECK (dead_letter IN (0, 1) AND idempotent IN (0, 1)), -- differs: booleans there
  CONSTRAINT job_attempts_max_positive CHECK (attempts_max >= 1),
  CONSTRAINT job_succeeded_is_committed CHECK (state <> 'succeeded' OR committed_at IS NOT NULL),
  CONSTRAINT job_finished_has_time CHECK ((state IN ('pending', 'running')) = (finished_at IS NULL)),
  CONSTRAINT job_running_has_lease CHECK (state <> 'running' OR (lease_id IS NOT NULL AND leased_at IS NOT NULL)),
  CONSTRAINT job_commit_is_of_a_running_or_succeeded_job CHECK (committed_at IS NULL OR state IN ('running', 'succeeded'))
) STRICT;

CREATE TABLE detent_job_key (
  tenant      TEXT    NOT NULL DEFAULT '',
  key         TEXT    NOT NULL,
  job_id      INTEGER  NOT NULL,
  fingerprint TEXT    NOT NULL,
  expires_at  INTEGER,
  until_claim INTEGER NOT NULL DEFAULT 0,
  CONSTRAINT job_key_pkey PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX detent_job_key_until_claim ON detent_job_key (job_id) WHERE until_claim;
CREATE INDEX detent_job_key_expiring ON detent_job_key (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE detent_queue (
  name      TEXT NOT NULL,
  paused_at INTEGER,
  paused_by TEXT,
  reason    TEXT,
  CONSTRAINT queue_pkey PRIMARY KEY (name)
) STRICT, WITHOUT ROWID;

-- A lane is one line of jobs of equal rank: a claim enters only the lanes it may, so what stands in others costs nothing.
CREATE TABLE detent_lane (
  id       INTEGER  NOT NULL,
  queue    TEXT     NOT NULL,
  task     TEXT     NOT NULL,
  tenant   TEXT     NOT NULL,
  priority INTEGER NOT NULL,
  CONSTRAINT lane_pkey PRIMARY KEY (id),
  CONSTRAINT lane_of_one_rank UNIQUE (queue, task, tenant, priority)
) STRICT;

CREATE TABLE detent_ready (
  lane_id    INTEGER     NOT NULL,
  ready_at   INTEGER NOT NULL,
  job_id     INTEGER      NOT NULL,
  holds_key  INTEGER     NOT NULL DEFAULT 0,
  expires_at INTEGER,
  CONSTRAINT ready_pkey PRIMARY KEY (lane_id, ready_at, job_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX detent_ready_expiring ON detent_ready (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE detent_waiting (
  job_id     INTEGER      NOT NULL,
  lane_id    INTEGER     NOT NULL,
  due_at     INTEGER NOT NULL,
  holds_key  INTEGER     NOT NULL DEFAULT 0,
  expires_at INTEGER,
  limit_key  TEXT,
  priority   INTEGER    NOT NULL,
  CONSTRAINT waiting_pkey PRIMARY KEY (job_id)
) STRICT;
CREATE INDEX detent_waiting_due ON detent_waiting (due_at, job_id) WHERE limit_key IS NULL;
CREATE INDEX detent_waiting_limited ON detent_waiting (limit_key, priority DESC, due_at, job_id) WHERE limit_key IS NOT NULL;
CREATE INDEX detent_waiting_expiring ON detent_waiting (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE detent_lease (
  id         INTEGER      NOT NULL,
  worker     TEXT        NOT NULL,
  leased_at  INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  job_ids    TEXT    NOT NULL,
  CONSTRAINT lease_pkey PRIMARY KEY (id)
) STRICT;
CREATE INDEX detent_lease_expiring ON detent_lease (expires_at);

CREATE TABLE detent_execution (
  job_id       INTEGER      NOT NULL,
  attempt      INTEGER     NOT NULL,
  worker       TEXT        NOT NULL,
  leased_at    INTEGER NOT NULL,
  started_at   INTEGER,
  committed_at INTEGER,
  done_at      INTEGER,
  aborted_at   INTEGER,
  outcome      TEXT        NOT NULL,
  error        TEXT,
  next_state   TEXT        NOT NULL,
  next_due_at  INTEGER,
  counted      INTEGER     NOT NULL,
  CONSTRAINT execution_pkey PRIMARY KEY (job_id, attempt),
  CONSTRAINT execution_outcome_known CHECK (outcome = 'done' OR outcome = 'error' OR outcome = 'expired' OR outcome = 'crashed' OR outcome = 'cancelled' OR outcome = 'released' OR outcome = 'snoozed' OR outcome = 'throttled' OR outcome = 'timed_out' OR outcome = 'unknown'),
  CONSTRAINT execution_next_state_known CHECK (next_state = 'pending' OR next_state = 'succeeded' OR next_state = 'failed' OR next_state = 'quarantined' OR next_state = 'cancelled'),
  CONSTRAINT execution_ended_one_way CHECK ((outcome = 'done') = (done_at IS NOT NULL) AND (outcome = 'done') = (aborted_at IS NULL)),
  CONSTRAINT execution_done_is_committed CHECK ((outcome = 'done') = (committed_at IS NOT NULL)),
  CONSTRAINT execution_done_succeeds CHECK ((outcome = 'done') = (next_state = 'succeeded')),
  CONSTRAINT execution_attempt_positive CHECK (attempt >= 1)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX detent_execution_one_commit ON detent_execution (job_id) WHERE committed_at IS NOT NULL;

CREATE TABLE detent_transition_log (
  n              INTEGER     NOT NULL,
  tenant         TEXT        NOT NULL DEFAULT '',
  entity         TEXT        NOT NULL,
  entity_id      TEXT        NOT NULL,
  job_id         INTEGER,
  attempt        INTEGER     NOT NULL DEFAULT 0,
  from_state     TEXT,
  to_state       TEXT        NOT NULL,
  trigger        TEXT        NOT NULL,
  actor          TEXT        NOT NULL,
  reason         TEXT,
  metadata       TEXT,
  correlation_id TEXT,
  forced         INTEGER     NOT NULL DEFAULT 0,
  at             INTEGER NOT NULL,
  CONSTRAINT transition_log_pkey PRIMARY KEY (n),
  CONSTRAINT transition_log_has_actor CHECK (actor <> ''),
  CONSTRAINT transition_log_force_has_reason CHECK (NOT forced OR (reason IS NOT NULL AND reason <> ''))
) STRICT;
CREATE INDEX detent_transition_log_of_job ON detent_transition_log (job_id, n) WHERE job_id IS NOT NULL;
CREATE INDEX detent_transition_log_of_entity ON detent_transition_log (entity, entity_id, n) WHERE job_id IS NULL;

CREATE TABLE detent_event (
  job_id  INTEGER      NOT NULL,
  seq     INTEGER     NOT NULL,
  attempt INTEGER     NOT NULL,
  level   TEXT        NOT NULL,
  message TEXT        NOT NULL,
  payload TEXT,
  key     TEXT,
  at      INTEGER NOT NULL,
  CONSTRAINT event_pkey PRIMARY KEY (job_id, seq),
  CONSTRAINT event_seq_positive CHECK (seq >= 1)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX detent_event_one_per_key ON detent_event (job_id, key) WHERE key IS NOT NULL;

CREATE TABLE detent_dead (
  job_id         INTEGER      NOT NULL,
  tenant         TEXT        NOT NULL,
  queue          TEXT        NOT NULL,
  task           TEXT        NOT NULL,
  reason         TEXT        NOT NULL,
  quarantined_at INTEGER NOT NULL,
  CONSTRAINT dead_pkey PRIMARY KEY (job_id)
) STRICT;

-- Retention may delete only below the newest horizon, and each horizon is on record.
CREATE TABLE detent_horizon (
  n        INTEGER     NOT NULL,
  before   INTEGER NOT NULL,
  actor    TEXT        NOT NULL,
  at       INTEGER NOT NULL,
  CONSTRAINT horizon_pkey PRIMARY KEY (n)
) STRICT;

-- Every attempt: the ended ones, and those in flight, found through their leases.
CREATE VIEW detent_executions AS
  SELECT e.job_id, e.attempt, CASE WHEN e.outcome = 'done' THEN 'done' ELSE 'aborted' END AS state, e.worker,
         e.leased_at, e.started_at, e.committed_at, e.done_at, e.aborted_at, e.outcome, e.error,
         e.next_state, e.next_due_at, e.counted, NULL AS lease_id, NULL AS expires_at
    FROM detent_execution e
  UNION ALL
  SELECT j.id, j.attempt,
         CASE WHEN j.committed_at IS NOT NULL THEN 'committed' WHEN j.started_at IS NOT NULL THEN 'in_progress' ELSE 'leased' END,
         l.worker, j.leased_at, j.started_at, j.committed_at, NULL, NULL, NULL, NULL, NULL, NULL, NULL, l.id, l.expires_at
    FROM detent_lease l , json_each(l.job_ids) AS held
    JOIN detent_job j ON j.id = held.value AND j.lease_id = l.id AND j.state = 'running';

-- One line per change of anything. Order within an entity: (attempt, rank, n), never time alone.
-- The ordinary path is read out of the executions; error, crashed, timed out and unknown, and every end that comes to
-- rest in failed or quarantined, go by way of failed: one UPDATE, two lines.
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
    FROM detent_transition_log;
