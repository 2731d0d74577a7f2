-- C1, J3, R3: every table with its CHECKs and every unique index is there, letter for letter.
-- Generated from the migrations by `python -m detent.store.invariants.generate`; a test keeps it equal.
-- differs: SQLite keeps the text of its schema, so the text is compared.
WITH wanted (type, name, text) AS (VALUES
    ('index', 'detent_event_one_per_key', 'CREATE UNIQUE INDEX detent_event_one_per_key ON detent_event (job_id, key) WHERE key IS NOT NULL'),
    ('index', 'detent_execution_one_commit', 'CREATE UNIQUE INDEX detent_execution_one_commit ON detent_execution (job_id) WHERE committed_at IS NOT NULL'),
    ('table', 'detent_dead', 'CREATE TABLE detent_dead (
  job_id         INTEGER      NOT NULL,
  tenant         TEXT        NOT NULL,
  queue          TEXT        NOT NULL,
  task           TEXT        NOT NULL,
  reason         TEXT        NOT NULL,
  quarantined_at INTEGER NOT NULL,
  CONSTRAINT dead_pkey PRIMARY KEY (job_id)
) STRICT'),
    ('table', 'detent_event', 'CREATE TABLE detent_event (
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
) STRICT, WITHOUT ROWID'),
    ('table', 'detent_execution', 'CREATE TABLE detent_execution (
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
  CONSTRAINT execution_outcome_known CHECK (outcome = ''done'' OR outcome = ''error'' OR outcome = ''expired'' OR outcome = ''crashed'' OR outcome = ''cancelled'' OR outcome = ''released'' OR outcome = ''snoozed'' OR outcome = ''throttled'' OR outcome = ''timed_out'' OR outcome = ''unknown''),
  CONSTRAINT execution_next_state_known CHECK (next_state = ''pending'' OR next_state = ''succeeded'' OR next_state = ''failed'' OR next_state = ''quarantined'' OR next_state = ''cancelled''),
  CONSTRAINT execution_ended_one_way CHECK ((outcome = ''done'') = (done_at IS NOT NULL) AND (outcome = ''done'') = (aborted_at IS NULL)),
  CONSTRAINT execution_done_is_committed CHECK ((outcome = ''done'') = (committed_at IS NOT NULL)),
  CONSTRAINT execution_done_succeeds CHECK ((outcome = ''done'') = (next_state = ''succeeded'')),
  CONSTRAINT execution_attempt_positive CHECK (attempt >= 1)
) STRICT, WITHOUT ROWID'),
    ('table', 'detent_horizon', 'CREATE TABLE detent_horizon (
  n        INTEGER     NOT NULL,
  before   INTEGER NOT NULL,
  actor    TEXT        NOT NULL,
  at       INTEGER NOT NULL,
  CONSTRAINT horizon_pkey PRIMARY KEY (n)
) STRICT'),
    ('table', 'detent_ids', 'CREATE TABLE detent_ids (
  next INTEGER NOT NULL
) STRICT'),
    ('table', 'detent_job', 'CREATE TABLE detent_job (
  id                  INTEGER      NOT NULL,
  tenant              TEXT        NOT NULL DEFAULT '''',
  task                TEXT        NOT NULL,
  queue               TEXT        NOT NULL DEFAULT ''default'',
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
  state               TEXT        NOT NULL DEFAULT ''pending'',
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
  committed_at        INTEGER, effect_told_by TEXT
  CONSTRAINT job_effect_told_by_known CHECK (effect_told_by = ''probe'' OR effect_told_by = ''marker''),
  CONSTRAINT job_pkey PRIMARY KEY (id),
  CONSTRAINT job_state_known CHECK (state = ''pending'' OR state = ''running'' OR state = ''succeeded'' OR state = ''failed'' OR state = ''quarantined'' OR state = ''cancelled''),
  CONSTRAINT job_running_has_open_attempt CHECK ((state = ''running'') = (ended < attempt)),
  CONSTRAINT job_attempts_in_order CHECK (ended BETWEEN attempt - 1 AND attempt AND spared BETWEEN 0 AND attempt AND attempt >= 0),
  CONSTRAINT job_priority_is_small CHECK (priority BETWEEN -32768 AND 32767), -- differs: a smallint there
  CONSTRAINT job_booleans CHECK (dead_letter IN (0, 1) AND idempotent IN (0, 1)), -- differs: booleans there
  CONSTRAINT job_attempts_max_positive CHECK (attempts_max >= 1),
  CONSTRAINT job_succeeded_is_committed CHECK (state <> ''succeeded'' OR committed_at IS NOT NULL),
  CONSTRAINT job_finished_has_time CHECK ((state IN (''pending'', ''running'')) = (finished_at IS NULL)),
  CONSTRAINT job_running_has_lease CHECK (state <> ''running'' OR (lease_id IS NOT NULL AND leased_at IS NOT NULL)),
  CONSTRAINT job_commit_is_of_a_running_or_succeeded_job CHECK (committed_at IS NULL OR state IN (''running'', ''succeeded''))
) STRICT'),
    ('table', 'detent_job_key', 'CREATE TABLE detent_job_key (
  tenant      TEXT    NOT NULL DEFAULT '''',
  key         TEXT    NOT NULL,
  job_id      INTEGER  NOT NULL,
  fingerprint TEXT    NOT NULL,
  expires_at  INTEGER,
  until_claim INTEGER NOT NULL DEFAULT 0,
  CONSTRAINT job_key_pkey PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID'),
    ('table', 'detent_lane', 'CREATE TABLE "detent_lane" (
  id        INTEGER NOT NULL,
  queue     TEXT    NOT NULL,
  task      TEXT    NOT NULL,
  tenant    TEXT    NOT NULL,
  priority  INTEGER NOT NULL,
  limit_key TEXT    NOT NULL DEFAULT '''',
  CONSTRAINT lane_pkey PRIMARY KEY (id),
  CONSTRAINT lane_of_one_rank UNIQUE (queue, task, tenant, priority, limit_key)
) STRICT'),
    ('table', 'detent_lease', 'CREATE TABLE detent_lease (
  id         INTEGER      NOT NULL,
  worker     TEXT        NOT NULL,
  leased_at  INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  job_ids    TEXT    NOT NULL,
  CONSTRAINT lease_pkey PRIMARY KEY (id)
) STRICT'),
    ('table', 'detent_limit_member', 'CREATE TABLE detent_limit_member (
  kind      TEXT NOT NULL,
  name      TEXT NOT NULL,
  limit_key TEXT NOT NULL,
  CONSTRAINT limit_member_pkey PRIMARY KEY (kind, name),
  CONSTRAINT limit_member_kind_known CHECK (kind IN (''task'', ''queue''))
) STRICT, WITHOUT ROWID'),
    ('table', 'detent_limit_slot', 'CREATE TABLE detent_limit_slot (
  limit_key TEXT    NOT NULL,
  job_id    INTEGER NOT NULL,
  attempt   INTEGER NOT NULL,
  CONSTRAINT limit_slot_pkey PRIMARY KEY (limit_key, job_id)
) STRICT, WITHOUT ROWID'),
    ('table', 'detent_migration', 'CREATE TABLE detent_migration (
  version     INTEGER     NOT NULL,
  name        TEXT        NOT NULL,
  checksum    TEXT        NOT NULL,
  oldest_code INTEGER     NOT NULL,
  applied_at  INTEGER NOT NULL,
  CONSTRAINT migration_pkey PRIMARY KEY (version)
) STRICT'),
    ('table', 'detent_operation', 'CREATE TABLE detent_operation (
  id          INTEGER      NOT NULL,
  action      TEXT        NOT NULL,
  state       TEXT        NOT NULL DEFAULT ''running'',
  filter      TEXT        NOT NULL,
  argument    TEXT,
  actor       TEXT        NOT NULL,
  reason      TEXT,
  until_id    INTEGER      NOT NULL,
  after_id    INTEGER      NOT NULL DEFAULT 0,
  looked_at   INTEGER      NOT NULL DEFAULT 0,
  changed     INTEGER      NOT NULL DEFAULT 0,
  refused     INTEGER      NOT NULL DEFAULT 0,
  created_at  INTEGER NOT NULL,
  finished_at INTEGER,
  CONSTRAINT operation_pkey PRIMARY KEY (id),
  CONSTRAINT operation_action_known CHECK (action IN (''retry'', ''cancel'', ''discard'', ''move'')),
  CONSTRAINT operation_state_known CHECK (state IN (''running'', ''done'', ''cancelled'')),
  CONSTRAINT operation_finished_has_time CHECK ((state = ''running'') = (finished_at IS NULL))
) STRICT'),
    ('table', 'detent_queue', 'CREATE TABLE detent_queue (
  name      TEXT NOT NULL,
  paused_at INTEGER,
  paused_by TEXT,
  reason    TEXT,
  CONSTRAINT queue_pkey PRIMARY KEY (name)
) STRICT, WITHOUT ROWID'),
    ('table', 'detent_rate_limit', 'CREATE TABLE detent_rate_limit (
  key             TEXT             NOT NULL,
  rate            REAL,
  per             REAL NOT NULL,
  burst           REAL NOT NULL,
  concurrency_max INTEGER,
  tokens          REAL NOT NULL,
  refilled_at     INTEGER      NOT NULL,
  paused_until    INTEGER,
  throttled       INTEGER          NOT NULL DEFAULT 0,
  throttled_at    INTEGER,
  open_until      INTEGER, template TEXT, held_at INTEGER,
  CONSTRAINT rate_limit_pkey PRIMARY KEY (key),
  CONSTRAINT rate_limit_is_possible CHECK (rate > 0 AND per > 0 AND burst >= 1 AND concurrency_max >= 1)
) STRICT, WITHOUT ROWID'),
    ('table', 'detent_ready', 'CREATE TABLE detent_ready (
  lane_id    INTEGER     NOT NULL,
  ready_at   INTEGER NOT NULL,
  job_id     INTEGER      NOT NULL,
  holds_key  INTEGER     NOT NULL DEFAULT 0,
  expires_at INTEGER,
  CONSTRAINT ready_pkey PRIMARY KEY (lane_id, ready_at, job_id)
) STRICT, WITHOUT ROWID'),
    ('table', 'detent_recovery', 'CREATE TABLE detent_recovery (
  queue         TEXT    NOT NULL,
  stale_after   REAL,
  stalled_after REAL,
  changed_by    TEXT    NOT NULL,
  reason        TEXT,
  changed_at    INTEGER NOT NULL,
  CONSTRAINT recovery_pkey PRIMARY KEY (queue),
  CONSTRAINT recovery_of_something CHECK (stale_after IS NOT NULL OR stalled_after IS NOT NULL)
) STRICT, WITHOUT ROWID'),
    ('table', 'detent_schedule', 'CREATE TABLE detent_schedule (
  name         TEXT        NOT NULL,
  tenant       TEXT        NOT NULL DEFAULT '''',
  cron         TEXT        NOT NULL,
  zone         TEXT        NOT NULL,
  catch_up     TEXT        NOT NULL,
  task         TEXT        NOT NULL,
  payload      TEXT        NOT NULL,
  queue        TEXT        NOT NULL,
  priority     INTEGER    NOT NULL DEFAULT 0,
  attempts_max INTEGER     NOT NULL,
  dead_letter  INTEGER     NOT NULL DEFAULT 1,
  idempotent   INTEGER     NOT NULL DEFAULT 1,
  next_at      INTEGER NOT NULL,
  last_at      INTEGER,
  paused_at    INTEGER,
  paused_by    TEXT,
  reason       TEXT,
  changed_at   INTEGER NOT NULL, unique_pending INTEGER NOT NULL DEFAULT 0, limit_key TEXT,
  CONSTRAINT schedule_pkey PRIMARY KEY (name),
  CONSTRAINT schedule_catch_up_known CHECK (catch_up IN (''latest'', ''all'', ''skip''))
) STRICT, WITHOUT ROWID'),
    ('table', 'detent_schedule_fire', 'CREATE TABLE detent_schedule_fire (
  schedule TEXT        NOT NULL,
  fire_at  INTEGER NOT NULL,
  job_id   INTEGER,
  at       INTEGER NOT NULL,
  CONSTRAINT schedule_fire_pkey PRIMARY KEY (schedule, fire_at)
) STRICT, WITHOUT ROWID'),
    ('table', 'detent_service', 'CREATE TABLE detent_service (
  name       TEXT        NOT NULL,
  holder     INTEGER      NOT NULL,
  term       INTEGER      NOT NULL,
  expires_at INTEGER NOT NULL,
  CONSTRAINT service_pkey PRIMARY KEY (name)
) STRICT, WITHOUT ROWID'),
    ('table', 'detent_transition_log', 'CREATE TABLE detent_transition_log (
  n              INTEGER     NOT NULL,
  tenant         TEXT        NOT NULL DEFAULT '''',
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
  CONSTRAINT transition_log_has_actor CHECK (actor <> ''''),
  CONSTRAINT transition_log_force_has_reason CHECK (NOT forced OR (reason IS NOT NULL AND reason <> ''''))
) STRICT'),
    ('table', 'detent_untold', 'CREATE TABLE detent_untold (
  job_id      INTEGER NOT NULL,
  task        TEXT    NOT NULL,
  taken_until INTEGER,
  CONSTRAINT untold_pkey PRIMARY KEY (job_id)
) STRICT'),
    ('table', 'detent_waiting', 'CREATE TABLE detent_waiting (
  job_id     INTEGER      NOT NULL,
  lane_id    INTEGER     NOT NULL,
  due_at     INTEGER NOT NULL,
  holds_key  INTEGER     NOT NULL DEFAULT 0,
  expires_at INTEGER,
  limit_key  TEXT,
  priority   INTEGER    NOT NULL,
  CONSTRAINT waiting_pkey PRIMARY KEY (job_id)
) STRICT'),
    ('table', 'detent_worker', 'CREATE TABLE detent_worker (
  id         INTEGER      NOT NULL,
  name       TEXT        NOT NULL,
  host       TEXT        NOT NULL,
  pid        INTEGER     NOT NULL,
  queues     TEXT,
  tasks      TEXT        NOT NULL,
  slots      INTEGER     NOT NULL,
  running    INTEGER     NOT NULL,
  stopping   INTEGER     NOT NULL DEFAULT 0,
  started_at INTEGER NOT NULL,
  seen_at    INTEGER NOT NULL,
  CONSTRAINT worker_pkey PRIMARY KEY (id)
) STRICT')
  )
SELECT w.type AS entity, w.name AS entity_id,
       CASE WHEN s.name IS NULL THEN 'it is missing' ELSE 'its definition was changed' END AS detail
  FROM wanted w LEFT JOIN sqlite_master s ON s.type = w.type AND s.name = w.name
 WHERE s.name IS NULL OR s.sql <> w.text
 ORDER BY 1, 2;
