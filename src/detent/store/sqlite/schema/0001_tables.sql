-- Tables, constraints and indexes. Functions, triggers and views are not here: `detent migrate` installs them.
--
-- A CHECK with a value in double braces depends on a lifecycle. `detent migrate` fills the value in, and replaces the CHECK if
-- the lifecycle has changed. JSON is kept as the text that the client sent, so that both databases return the same bytes.

-- Migrations that this database has taken.
CREATE TABLE detent_migration (
  version     INTEGER NOT NULL,
  name        TEXT    NOT NULL,
  checksum    TEXT    NOT NULL,
  oldest_code INTEGER NOT NULL,
  applied_at  INTEGER NOT NULL,
  CONSTRAINT migration_pkey PRIMARY KEY (version)
) STRICT;

-- The release whose functions, triggers, views and state lists are in this database (one row). `complete` is false while
-- `detent migrate` puts them in place.
CREATE TABLE detent_installed (
  one         INTEGER NOT NULL DEFAULT 1,
  release     TEXT    NOT NULL,
  fingerprint TEXT    NOT NULL,
  complete    INTEGER NOT NULL,
  at          INTEGER NOT NULL,
  CONSTRAINT installed_pkey PRIMARY KEY (one),
  CONSTRAINT installed_is_one_row CHECK (one)
) STRICT;

-- differs: a row where PostgreSQL has a sequence.
CREATE TABLE detent_ids (
  next INTEGER NOT NULL
) STRICT;
INSERT INTO detent_ids (next) VALUES (1);

-- Identities of this database. A row applies to jobs and runs with ids from first_id on, so a new identity does not change the
-- effect key of an existing job. Rows are only added.
CREATE TABLE detent_identity (
  n        INTEGER NOT NULL,
  identity TEXT    NOT NULL,
  first_id INTEGER NOT NULL,
  made_by  TEXT    NOT NULL,
  reason   TEXT,
  made_at  INTEGER NOT NULL,
  CONSTRAINT identity_pkey PRIMARY KEY (n),
  CONSTRAINT identity_is_long CHECK (length(identity) = 32)
);
INSERT INTO detent_identity (n, identity, first_id, made_by, made_at)
VALUES (1, lower(hex(randomblob(16))), 0, 'migrate', CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER));

-- The secret with which tokens of signals are signed. Whoever has it can make tokens.
CREATE TABLE detent_signal_key (
  n       INTEGER NOT NULL,
  secret  TEXT    NOT NULL,
  made_at INTEGER NOT NULL,
  CONSTRAINT signal_key_pkey PRIMARY KEY (n),
  CONSTRAINT signal_key_is_one CHECK (n = 1),
  CONSTRAINT signal_key_is_long CHECK (length(secret) = 64)
);
INSERT INTO detent_signal_key (n, secret, made_at)
VALUES (1, lower(hex(randomblob(32))), CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER));

-- The version of each lifecycle that is attached to a table, so that an older program cannot replace a newer one.
CREATE TABLE detent_lifecycle (
  name        TEXT    NOT NULL,
  version     INTEGER NOT NULL,
  table_name  TEXT    NOT NULL,
  attached_at INTEGER NOT NULL,
  CONSTRAINT lifecycle_pkey PRIMARY KEY (name)
);

-- What a job is now. The columns from lease_id on are its running attempt.
-- effect_evidence     set before an attempt acts outside this database: the task's probe, or a marker in the other database,
--                    knows whether the effect has happened. NULL: no attempt has acted in such a way
-- result_dropped_at  when the result was dropped because the task's result_ttl was over
-- cost               tokens that the job takes from its task's limit when it starts; NULL is one
-- parent_id          the workflow that has spawned it
-- cancel_undo        false: the steps of the workflow are not undone, as the request for the cancel says
CREATE TABLE detent_job (
  id                  INTEGER NOT NULL,
  tenant              TEXT    NOT NULL DEFAULT '',
  task                TEXT    NOT NULL,
  queue               TEXT    NOT NULL DEFAULT 'default',
  priority            INTEGER NOT NULL DEFAULT 0,
  due_at              INTEGER NOT NULL,
  expires_at          INTEGER,
  payload             TEXT    NOT NULL,
  metadata            TEXT,
  correlation_id      TEXT,
  traceparent         TEXT,
  run_id              INTEGER,
  nonce               INTEGER NOT NULL,
  created_at          INTEGER NOT NULL,
  attempts_max        INTEGER NOT NULL,
  dead_letter         INTEGER NOT NULL DEFAULT 1,
  idempotent          INTEGER NOT NULL DEFAULT 1,
  limit_key           TEXT,
  state               TEXT    NOT NULL DEFAULT 'pending',
  attempt             INTEGER NOT NULL DEFAULT 0,
  spared              INTEGER NOT NULL DEFAULT 0,
  ended               INTEGER NOT NULL DEFAULT 0,
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
  effect_evidence      TEXT,
  result_dropped_at   INTEGER,
  cost                INTEGER,
  parent_id           INTEGER,
  cancel_undo         INTEGER,
  CONSTRAINT job_pkey PRIMARY KEY (id),
  CONSTRAINT job_state_known CHECK ({{job.state_known}}),
  CONSTRAINT job_running_has_open_attempt CHECK ((state = 'running') = (ended < attempt)),
  CONSTRAINT job_attempts_in_order CHECK (ended BETWEEN attempt - 1 AND attempt AND spared BETWEEN 0 AND attempt AND attempt >= 0),
  CONSTRAINT job_priority_is_small CHECK (priority BETWEEN -32768 AND 32767), -- differs: a smallint there
  CONSTRAINT job_booleans CHECK (dead_letter IN (0, 1) AND idempotent IN (0, 1)), -- differs: booleans there
  CONSTRAINT job_attempts_max_positive CHECK (attempts_max >= 1),
  CONSTRAINT job_succeeded_is_committed CHECK (state <> 'succeeded' OR committed_at IS NOT NULL),
  CONSTRAINT job_finished_has_time CHECK (({{job.state_is_open}}) = (finished_at IS NULL)),
  CONSTRAINT job_running_has_lease CHECK (state <> 'running' OR (lease_id IS NOT NULL AND leased_at IS NOT NULL)),
  CONSTRAINT job_commit_is_of_a_running_or_succeeded_job CHECK (committed_at IS NULL OR state IN ('running', 'succeeded')),
  CONSTRAINT job_effect_evidence_known CHECK (effect_evidence = 'probe' OR effect_evidence = 'marker'),
  CONSTRAINT job_dropped_result_is_gone CHECK (result_dropped_at IS NULL OR (result IS NULL AND state = 'succeeded')),
  CONSTRAINT job_cost_is_possible CHECK (cost >= 1)
) STRICT;
CREATE INDEX detent_job_by_run ON detent_job (run_id, created_at, id) WHERE run_id IS NOT NULL;
CREATE INDEX detent_job_by_correlation ON detent_job (correlation_id, created_at, id) WHERE correlation_id IS NOT NULL;
CREATE INDEX detent_job_by_parent ON detent_job (parent_id, id) WHERE parent_id IS NOT NULL;

-- Keys under which jobs were enqueued.
CREATE TABLE detent_job_key (
  tenant      TEXT    NOT NULL DEFAULT '',
  key         TEXT    NOT NULL,
  job_id      INTEGER NOT NULL,
  fingerprint TEXT    NOT NULL,
  expires_at  INTEGER,
  until_claim INTEGER NOT NULL DEFAULT 0,
  CONSTRAINT job_key_pkey PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX detent_job_key_expiring ON detent_job_key (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX detent_job_key_of_job ON detent_job_key (job_id);

-- Jobs by time of creation without an index entry for each: jobs that were created at the same time and share all but the last
-- ten bits of their ids.
CREATE TABLE detent_job_span (
  created_at INTEGER NOT NULL,
  block      INTEGER NOT NULL,
  first_id   INTEGER NOT NULL,
  last_id    INTEGER NOT NULL,
  CONSTRAINT job_span_pkey PRIMARY KEY (created_at, block, first_id),
  CONSTRAINT job_span_is_within_its_block CHECK (first_id <= last_id AND first_id >> 10 = block AND last_id >> 10 = block)
) STRICT, WITHOUT ROWID;

-- Jobs that are failed or cancelled.
CREATE TABLE detent_unsuccessful (
  state  TEXT    NOT NULL,
  job_id INTEGER NOT NULL,
  CONSTRAINT unsuccessful_pkey PRIMARY KEY (state, job_id)
) STRICT, WITHOUT ROWID;

-- Queues that were paused.
CREATE TABLE detent_queue (
  name      TEXT    NOT NULL,
  paused_at INTEGER,
  paused_by TEXT,
  reason    TEXT,
  CONSTRAINT queue_pkey PRIMARY KEY (name)
) STRICT, WITHOUT ROWID;

-- A queue, a task and a version. The id of a lane is the id of its group times 2^32 plus a number of its own, so a claim steps from
-- one lane with ready jobs to the next within the ranges of its groups.
CREATE TABLE detent_lane_group (
  id      INTEGER NOT NULL,
  queue   TEXT    NOT NULL,
  task    TEXT    NOT NULL,
  version INTEGER NOT NULL DEFAULT 0,
  CONSTRAINT lane_group_pkey PRIMARY KEY (id),
  CONSTRAINT lane_group_of_one_kind UNIQUE (queue, task, version)
) STRICT;

-- A lane holds jobs of one queue, task, tenant, priority, limit key and version. A claim reads only the lanes that it may claim from.
-- limit_key  the limit that its jobs share; empty if that is the limit of their task
-- version    the version under which its workflows began; 0 if they have recorded nothing, and for all other jobs
CREATE TABLE detent_lane (
  id        INTEGER NOT NULL,
  queue     TEXT    NOT NULL,
  task      TEXT    NOT NULL,
  tenant    TEXT    NOT NULL,
  priority  INTEGER NOT NULL,
  limit_key TEXT    NOT NULL DEFAULT '',
  version   INTEGER NOT NULL DEFAULT 0,
  CONSTRAINT lane_pkey PRIMARY KEY (id),
  CONSTRAINT lane_of_one_rank UNIQUE (queue, task, tenant, priority, limit_key, version)
) STRICT;
CREATE INDEX detent_lane_of_tenant ON detent_lane (tenant, priority DESC, id);

-- Pending jobs that are due, one row each.
CREATE TABLE detent_ready (
  lane_id    INTEGER NOT NULL,
  ready_at   INTEGER NOT NULL,
  job_id     INTEGER NOT NULL,
  holds_key  INTEGER NOT NULL DEFAULT 0,
  expires_at INTEGER,
  CONSTRAINT ready_pkey PRIMARY KEY (lane_id, ready_at, job_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX detent_ready_expiring ON detent_ready (expires_at) WHERE expires_at IS NOT NULL;

-- Pending jobs that are due later or held back by a limit, one row each.
CREATE TABLE detent_waiting (
  job_id     INTEGER NOT NULL,
  lane_id    INTEGER NOT NULL,
  due_at     INTEGER NOT NULL,
  holds_key  INTEGER NOT NULL DEFAULT 0,
  expires_at INTEGER,
  limit_key  TEXT,
  priority   INTEGER NOT NULL,
  CONSTRAINT waiting_pkey PRIMARY KEY (job_id)
) STRICT;
CREATE INDEX detent_waiting_due ON detent_waiting (due_at, job_id) WHERE limit_key IS NULL;
CREATE INDEX detent_waiting_limited ON detent_waiting (limit_key, priority DESC, due_at, job_id) WHERE limit_key IS NOT NULL;
CREATE INDEX detent_waiting_expiring ON detent_waiting (expires_at) WHERE expires_at IS NOT NULL;

-- One row for each claim. The reaper looks for expired work only here.
CREATE TABLE detent_lease (
  id         INTEGER NOT NULL,
  worker     TEXT    NOT NULL,
  leased_at  INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  job_ids    TEXT    NOT NULL,
  CONSTRAINT lease_pkey PRIMARY KEY (id)
) STRICT;
CREATE INDEX detent_lease_expiring ON detent_lease (expires_at);

-- One row for each ended attempt. Rows are inserted once and never updated.
CREATE TABLE detent_execution (
  job_id       INTEGER NOT NULL,
  attempt      INTEGER NOT NULL,
  worker       TEXT    NOT NULL,
  leased_at    INTEGER NOT NULL,
  started_at   INTEGER,
  committed_at INTEGER,
  done_at      INTEGER,
  aborted_at   INTEGER,
  outcome      TEXT    NOT NULL,
  error        TEXT,
  next_state   TEXT    NOT NULL,
  next_due_at  INTEGER,
  counted      INTEGER NOT NULL,
  suspect      INTEGER NOT NULL DEFAULT 0,
  CONSTRAINT execution_pkey PRIMARY KEY (job_id, attempt),
  CONSTRAINT execution_outcome_known CHECK ({{execution.outcome_known}}),
  CONSTRAINT execution_next_state_known CHECK ({{execution.next_state_known}}),
  CONSTRAINT execution_ended_one_way CHECK ((outcome = 'done') = (done_at IS NOT NULL) AND (outcome = 'done') = (aborted_at IS NULL)),
  CONSTRAINT execution_done_is_committed CHECK ((outcome = 'done') = (committed_at IS NOT NULL)),
  CONSTRAINT execution_done_succeeds CHECK ((outcome = 'done') = (next_state = 'succeeded')),
  CONSTRAINT execution_attempt_positive CHECK (attempt >= 1)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX detent_execution_one_commit ON detent_execution (job_id) WHERE committed_at IS NOT NULL;
CREATE INDEX detent_execution_troubled ON detent_execution (aborted_at) WHERE outcome = 'throttled' OR (outcome = 'expired' AND next_state <> 'pending');
-- A workflow may have a million attempts that have parked: those that ended otherwise are found without them.
CREATE INDEX detent_execution_unlucky ON detent_execution (job_id) WHERE outcome = 'crashed' OR outcome = 'expired' OR suspect;

-- Explicit moves, append-only. Together with execution it gives every past state.
CREATE TABLE detent_transition_log (
  -- Numbers are never used again, also if the newest line was deleted: readers continue after a number.
  n              INTEGER NOT NULL CONSTRAINT transition_log_pkey PRIMARY KEY AUTOINCREMENT,
  tenant         TEXT    NOT NULL DEFAULT '',
  entity         TEXT    NOT NULL,
  entity_id      TEXT    NOT NULL,
  job_id         INTEGER,
  attempt        INTEGER NOT NULL DEFAULT 0,
  from_state     TEXT,
  to_state       TEXT    NOT NULL,
  trigger        TEXT    NOT NULL,
  actor          TEXT    NOT NULL,
  reason         TEXT,
  metadata       TEXT,
  correlation_id TEXT,
  forced         INTEGER NOT NULL DEFAULT 0,
  at             INTEGER NOT NULL,
  CONSTRAINT transition_log_has_actor CHECK (actor <> ''),
  CONSTRAINT transition_log_force_has_reason CHECK (NOT forced OR (reason IS NOT NULL AND reason <> ''))
) STRICT;
CREATE INDEX detent_transition_log_of_job ON detent_transition_log (job_id, n) WHERE job_id IS NOT NULL;
CREATE INDEX detent_transition_log_of_entity ON detent_transition_log (entity, entity_id, n) WHERE job_id IS NULL;
CREATE INDEX detent_transition_log_by_time ON detent_transition_log (at, n);
CREATE INDEX detent_transition_log_by_actor ON detent_transition_log (actor, at, n);

-- Events that jobs have written.
CREATE TABLE detent_event (
  job_id  INTEGER NOT NULL,
  seq     INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  level   TEXT    NOT NULL,
  message TEXT    NOT NULL,
  payload TEXT,
  key     TEXT,
  at      INTEGER NOT NULL,
  CONSTRAINT event_pkey PRIMARY KEY (job_id, seq),
  CONSTRAINT event_seq_positive CHECK (seq >= 1)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX detent_event_one_per_key ON detent_event (job_id, key) WHERE key IS NOT NULL;
-- The status of a workflow is found however much it has written to streams since.
CREATE INDEX detent_event_status ON detent_event (job_id, seq) WHERE message = 'status';

-- Quarantined jobs.
CREATE TABLE detent_dead (
  job_id         INTEGER NOT NULL,
  tenant         TEXT    NOT NULL,
  queue          TEXT    NOT NULL,
  task           TEXT    NOT NULL,
  reason         TEXT    NOT NULL,
  quarantined_at INTEGER NOT NULL,
  CONSTRAINT dead_pkey PRIMARY KEY (job_id)
) STRICT;

-- Failures that no failure hook has seen yet, one row for each failed attempt.
CREATE TABLE detent_failure_report (
  job_id      INTEGER NOT NULL,
  task        TEXT    NOT NULL,
  taken_until INTEGER,
  attempt     INTEGER NOT NULL,
  CONSTRAINT failure_report_pkey PRIMARY KEY (job_id, attempt)
) STRICT;
CREATE INDEX detent_failure_report_of_task ON detent_failure_report (task, job_id, attempt);

-- Retention deletes only below the newest horizon, and every horizon is on record.
CREATE TABLE detent_horizon (
  n      INTEGER NOT NULL,
  before INTEGER NOT NULL,
  actor  TEXT    NOT NULL,
  at     INTEGER NOT NULL,
  CONSTRAINT horizon_pkey PRIMARY KEY (n)
) STRICT;
CREATE INDEX detent_horizon_before ON detent_horizon (before);

-- Finished jobs by tenant, queue, task and state, as of the last fold.
CREATE TABLE detent_finished_count (
  tenant TEXT    NOT NULL,
  queue  TEXT    NOT NULL,
  task   TEXT    NOT NULL,
  state  TEXT    NOT NULL,
  jobs   INTEGER NOT NULL,
  CONSTRAINT finished_count_pkey PRIMARY KEY (tenant, queue, task, state)
) STRICT, WITHOUT ROWID;

-- The same for all tenants together.
CREATE TABLE detent_finished_total (
  queue TEXT    NOT NULL,
  task  TEXT    NOT NULL,
  state TEXT    NOT NULL,
  jobs  INTEGER NOT NULL,
  CONSTRAINT finished_total_pkey PRIMARY KEY (queue, task, state)
) STRICT, WITHOUT ROWID;

-- Changes since then, except jobs that went from running to succeeded. The transaction that moves a job writes the row, so the
-- sum is exact.
CREATE TABLE detent_finished_delta (
  n      INTEGER NOT NULL,
  tenant TEXT    NOT NULL,
  queue  TEXT    NOT NULL,
  task   TEXT    NOT NULL,
  state  TEXT    NOT NULL,
  jobs   INTEGER NOT NULL,
  CONSTRAINT finished_delta_pkey PRIMARY KEY (n)
) STRICT;

-- Jobs that went from running to succeeded since then, one row for all that ended together.
CREATE TABLE detent_succeeded_batch (
  n       INTEGER NOT NULL,
  job_ids TEXT    NOT NULL,
  CONSTRAINT succeeded_batch_pkey PRIMARY KEY (n)
) STRICT;

-- Moves of jobs by hour, task, states and outcome, as of the last fold; kept for 31 days. Times are in microseconds:
-- held_us    in the previous state; for a pending job since it was due
-- ran_us     from the call of the function to the end of the attempt
-- waited_us  from when the job was due to its claim
-- bucket     a lower bound of how long the function ran; -1 if it was never called
CREATE TABLE detent_transition_hour (
  hour          INTEGER NOT NULL,
  task          TEXT    NOT NULL,
  from_state    TEXT    NOT NULL,
  to_state      TEXT    NOT NULL,
  outcome       TEXT    NOT NULL,
  bucket        INTEGER NOT NULL,
  moves         INTEGER NOT NULL,
  held_us       INTEGER NOT NULL,
  held_us_max   INTEGER NOT NULL,
  ran_us        INTEGER NOT NULL,
  ran_us_max    INTEGER NOT NULL,
  waited_us     INTEGER NOT NULL,
  waited_us_max INTEGER NOT NULL,
  CONSTRAINT transition_hour_pkey PRIMARY KEY (hour, task, from_state, to_state, outcome, bucket),
  CONSTRAINT transition_hour_adds_up CHECK (moves > 0 AND held_us_max >= 0 AND held_us >= held_us_max AND ran_us_max >= 0 AND ran_us >= ran_us_max AND waited_us_max >= 0 AND waited_us >= waited_us_max)
) STRICT, WITHOUT ROWID;

-- The same without tasks, by minute (seconds = 60); hours that ended more than six hours ago are one row (3600). Kept for 31 days.
-- us  how long the function ran; for moves to running, how long the job had waited. bucket is its lower bound.
CREATE TABLE detent_transition_rate (
  seconds  INTEGER NOT NULL,
  at       INTEGER NOT NULL,
  to_state TEXT    NOT NULL,
  outcome  TEXT    NOT NULL,
  bucket   INTEGER NOT NULL,
  moves    INTEGER NOT NULL,
  us       INTEGER NOT NULL,
  us_max   INTEGER NOT NULL,
  CONSTRAINT transition_rate_pkey PRIMARY KEY (seconds, at, to_state, outcome, bucket),
  CONSTRAINT transition_rate_is_of_a_step CHECK (seconds = 60 OR seconds = 3600),
  CONSTRAINT transition_rate_adds_up CHECK (moves > 0 AND us_max >= 0 AND us >= us_max)
) STRICT, WITHOUT ROWID;

-- Moves since then, except running to succeeded (see succeeded_batch).
CREATE TABLE detent_transition_delta (
  n          INTEGER NOT NULL,
  at         INTEGER NOT NULL,
  task       TEXT    NOT NULL,
  from_state TEXT    NOT NULL,
  to_state   TEXT    NOT NULL,
  outcome    TEXT    NOT NULL,
  held_us    INTEGER NOT NULL,
  ran_us     INTEGER,
  waited_us  INTEGER NOT NULL,
  CONSTRAINT transition_delta_pkey PRIMARY KEY (n)
) STRICT;

-- Targets of outgoing webhooks, and up to which place in the record each has been told.
CREATE TABLE detent_webhook_target (
  name     TEXT    NOT NULL,
  place    TEXT    NOT NULL,
  moved_at INTEGER NOT NULL,
  CONSTRAINT webhook_target_pkey PRIMARY KEY (name)
) STRICT;

-- Tasks whose successes a target of outgoing webhooks is told of. counts_fold puts these on the list of failure_report.
CREATE TABLE detent_announced_task (
  task TEXT NOT NULL,
  CONSTRAINT announced_task_pkey PRIMARY KEY (task)
) STRICT;

-- Workers, as each reports itself once a second. Nothing is decided by it: leases decide.
CREATE TABLE detent_worker (
  id         INTEGER NOT NULL,
  name       TEXT    NOT NULL,
  host       TEXT    NOT NULL,
  pid        INTEGER NOT NULL,
  queues     TEXT,
  tasks      TEXT    NOT NULL,
  slots      INTEGER NOT NULL,
  running    INTEGER NOT NULL,
  stopping   INTEGER NOT NULL DEFAULT 0,
  started_at INTEGER NOT NULL,
  seen_at    INTEGER NOT NULL,
  drain_requested_at INTEGER,
  drain_requested_by TEXT,
  drain_reason       TEXT,
  versions   TEXT    NOT NULL DEFAULT '{}',
  CONSTRAINT worker_pkey PRIMARY KEY (id),
  CONSTRAINT worker_drain_has_actor CHECK ((drain_requested_at IS NULL) = (drain_requested_by IS NULL))
) STRICT;

-- The last time at which a worker was alive, and the last gap of more than five seconds in which none was. A lease that expired
-- in the gap may belong to a living worker, which gets time to renew it.
CREATE TABLE detent_watch (
  one        INTEGER NOT NULL DEFAULT 1,
  watched_at INTEGER,
  gap_from   INTEGER,
  gap_to     INTEGER,
  CONSTRAINT watch_pkey PRIMARY KEY (one),
  CONSTRAINT watch_is_one_row CHECK (one)
) STRICT;
INSERT INTO detent_watch (one) VALUES (1);

-- Services of which one instance is enough: its holder, its term, and when it expires. The row `wake` says until when a
-- worker waits for work, so that an enqueue notifies only if a worker waits.
CREATE TABLE detent_service (
  name       TEXT    NOT NULL,
  holder     INTEGER NOT NULL,
  term       INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  CONSTRAINT service_pkey PRIMARY KEY (name)
) STRICT, WITHOUT ROWID;

-- Fingerprints of what programs have declared, one row for each change; an empty fingerprint means that it was removed.
CREATE TABLE detent_declaration (
  kind        TEXT    NOT NULL,
  name        TEXT    NOT NULL,
  n           INTEGER NOT NULL,
  fingerprint TEXT    NOT NULL,
  at          INTEGER NOT NULL,
  CONSTRAINT declaration_pkey PRIMARY KEY (kind, name, n),
  CONSTRAINT declaration_kind_known CHECK (kind IN ('schedule', 'limit')),
  CONSTRAINT declaration_is_numbered CHECK (n > 0)
) STRICT, WITHOUT ROWID;

-- Time limits that tasks declare: seconds after which a job is stale or stalled, and for which its result is kept. NULL: the
-- default. Workers write them.
CREATE TABLE detent_task_times (
  task          TEXT NOT NULL,
  stale_after   REAL,
  stalled_after REAL,
  result_ttl    REAL,
  CONSTRAINT task_times_pkey PRIMARY KEY (task),
  CONSTRAINT task_times_say_something CHECK (stale_after > 0 OR stalled_after > 0 OR result_ttl > 0)
) STRICT, WITHOUT ROWID;

-- Fields of tasks that are secret: paths in the arguments of their jobs. Workers write them.
CREATE TABLE detent_task_secret (
  task TEXT NOT NULL,
  path TEXT NOT NULL,
  CONSTRAINT task_secret_pkey PRIMARY KEY (task, path),
  CONSTRAINT task_secret_names_a_field CHECK (path <> '')
) STRICT, WITHOUT ROWID;

-- Queues whose silent jobs are recovered without a person's approval, and after how many seconds.
CREATE TABLE detent_recovery (
  queue         TEXT    NOT NULL,
  stale_after   REAL,
  stalled_after REAL,
  changed_by    TEXT    NOT NULL,
  reason        TEXT,
  changed_at    INTEGER NOT NULL,
  CONSTRAINT recovery_pkey PRIMARY KEY (queue),
  CONSTRAINT recovery_of_something CHECK (stale_after IS NOT NULL OR stalled_after IS NOT NULL)
) STRICT, WITHOUT ROWID;

-- Schedules and their next tick.
CREATE TABLE detent_schedule (
  name           TEXT    NOT NULL,
  tenant         TEXT    NOT NULL DEFAULT '',
  cron           TEXT    NOT NULL,
  zone           TEXT    NOT NULL,
  catch_up       TEXT    NOT NULL,
  task           TEXT    NOT NULL,
  payload        TEXT    NOT NULL,
  queue          TEXT    NOT NULL,
  priority       INTEGER NOT NULL DEFAULT 0,
  attempts_max   INTEGER NOT NULL,
  dead_letter    INTEGER NOT NULL DEFAULT 1,
  idempotent     INTEGER NOT NULL DEFAULT 1,
  next_at        INTEGER NOT NULL,
  last_at        INTEGER,
  paused_at      INTEGER,
  paused_by      TEXT,
  reason         TEXT,
  changed_at     INTEGER NOT NULL,
  unique_pending INTEGER NOT NULL DEFAULT 0,
  limit_key      TEXT,
  cost           INTEGER,
  CONSTRAINT schedule_pkey PRIMARY KEY (name),
  CONSTRAINT schedule_catch_up_known CHECK (catch_up IN ('latest', 'all', 'skip'))
) STRICT, WITHOUT ROWID;

-- Ticks of schedules; the primary key makes each tick happen once.
CREATE TABLE detent_schedule_fire (
  schedule TEXT    NOT NULL,
  fire_at  INTEGER NOT NULL,
  job_id   INTEGER,
  at       INTEGER NOT NULL,
  CONSTRAINT schedule_fire_pkey PRIMARY KEY (schedule, fire_at)
) STRICT, WITHOUT ROWID;

-- Bulk actions by filter, and how far each has come.
CREATE TABLE detent_operation (
  id          INTEGER NOT NULL,
  action      TEXT    NOT NULL,
  state       TEXT    NOT NULL DEFAULT 'running',
  filter      TEXT    NOT NULL,
  argument    TEXT,
  actor       TEXT    NOT NULL,
  reason      TEXT,
  until_id    INTEGER NOT NULL,
  after_id    INTEGER NOT NULL DEFAULT 0,
  looked_at   INTEGER NOT NULL DEFAULT 0,
  changed     INTEGER NOT NULL DEFAULT 0,
  refused     INTEGER NOT NULL DEFAULT 0,
  created_at  INTEGER NOT NULL,
  finished_at INTEGER,
  CONSTRAINT operation_pkey PRIMARY KEY (id),
  CONSTRAINT operation_action_known CHECK (action IN ('retry', 'cancel', 'discard', 'move')),
  CONSTRAINT operation_state_known CHECK (state IN ('running', 'done', 'cancelled')),
  CONSTRAINT operation_finished_has_time CHECK ((state = 'running') = (finished_at IS NULL))
) STRICT;
CREATE INDEX detent_operation_by_state ON detent_operation (state, id);

-- Limits: the bucket of tokens as of refilled_at, the pause and the circuit breaker.
-- template  the limit whose bounds this one has, for limits by key; NULL: its own
-- held_at   paused by a person, until a person resumes it
CREATE TABLE detent_rate_limit (
  key             TEXT    NOT NULL,
  rate            REAL,
  per             REAL    NOT NULL,
  burst           REAL    NOT NULL,
  concurrency_max INTEGER,
  tokens          REAL    NOT NULL,
  refilled_at     INTEGER NOT NULL,
  paused_until    INTEGER,
  throttled       INTEGER NOT NULL DEFAULT 0,
  throttled_at    INTEGER,
  open_until      INTEGER,
  template        TEXT,
  held_at         INTEGER,
  CONSTRAINT rate_limit_pkey PRIMARY KEY (key),
  CONSTRAINT rate_limit_is_possible CHECK (rate > 0 AND per > 0 AND burst >= 1 AND concurrency_max >= 1)
) STRICT, WITHOUT ROWID;
CREATE INDEX detent_rate_limit_of_template ON detent_rate_limit (template) WHERE template IS NOT NULL;
CREATE INDEX detent_rate_limit_open ON detent_rate_limit (key) WHERE open_until IS NOT NULL;

-- Tasks and queues to which a limit applies.
CREATE TABLE detent_limit_member (
  kind      TEXT NOT NULL,
  name      TEXT NOT NULL,
  limit_key TEXT NOT NULL,
  CONSTRAINT limit_member_pkey PRIMARY KEY (kind, name),
  CONSTRAINT limit_member_kind_known CHECK (kind IN ('task', 'queue'))
) STRICT, WITHOUT ROWID;

-- Attempts that run under a limit. A row counts only while its job is running at that attempt, so nothing has to free it; the
-- next claim under the limit deletes stale rows. cost: tokens that the attempt has taken so far.
CREATE TABLE detent_limit_slot (
  limit_key TEXT    NOT NULL,
  job_id    INTEGER NOT NULL,
  attempt   INTEGER NOT NULL,
  cost      REAL    NOT NULL DEFAULT 1,
  CONSTRAINT limit_slot_pkey PRIMARY KEY (limit_key, job_id),
  CONSTRAINT limit_slot_cost_is_possible CHECK (cost >= 0)
) STRICT, WITHOUT ROWID;

-- Alerts, one row for each policy and scope; each time one starts firing is an episode of its own.
CREATE TABLE detent_alert (
  policy              TEXT    NOT NULL,
  scope               TEXT    NOT NULL DEFAULT '',
  severity            TEXT    NOT NULL,
  state               TEXT    NOT NULL,
  episode             INTEGER NOT NULL DEFAULT 1,
  message             TEXT    NOT NULL,
  facts               TEXT,
  value               REAL,
  raised              INTEGER NOT NULL DEFAULT 1,
  since               INTEGER NOT NULL,
  last_at             INTEGER NOT NULL,
  notified_at             INTEGER NOT NULL,
  resolved_at         INTEGER,
  acknowledged_at     INTEGER,
  acknowledged_by     TEXT,
  acknowledged_reason TEXT,
  CONSTRAINT alert_pkey PRIMARY KEY (policy, scope),
  CONSTRAINT alert_state_known CHECK (state = 'firing' OR state = 'resolved'),
  CONSTRAINT alert_severity_known CHECK (severity = 'info' OR severity = 'warning' OR severity = 'critical'),
  CONSTRAINT alert_resolved_has_time CHECK ((state = 'resolved') = (resolved_at IS NOT NULL)),
  CONSTRAINT alert_acknowledged_by_somebody CHECK ((acknowledged_at IS NULL) = (acknowledged_by IS NULL)),
  CONSTRAINT alert_counts_from_one CHECK (episode >= 1 AND raised >= 1)
) STRICT, WITHOUT ROWID;
CREATE INDEX detent_alert_by_state ON detent_alert (state, since, policy, scope);
CREATE INDEX detent_alert_resolved ON detent_alert (resolved_at) WHERE resolved_at IS NOT NULL;

-- Alert policies that differ from the defaults in the code.
CREATE TABLE detent_alert_policy (
  name           TEXT    NOT NULL,
  measure        TEXT    NOT NULL,
  each           TEXT    NOT NULL,
  severity       TEXT    NOT NULL,
  threshold      REAL,
  window_seconds REAL    NOT NULL,
  count_min      INTEGER NOT NULL,
  calm_seconds   REAL    NOT NULL,
  message        TEXT    NOT NULL,
  enabled        INTEGER NOT NULL,
  changed_by     TEXT    NOT NULL,
  reason         TEXT,
  changed_at     INTEGER NOT NULL,
  CONSTRAINT alert_policy_pkey PRIMARY KEY (name),
  CONSTRAINT alert_policy_severity_known CHECK (severity = 'info' OR severity = 'warning' OR severity = 'critical'),
  CONSTRAINT alert_policy_each_known CHECK (each = 'whole' OR each = 'queue' OR each = 'task' OR each = 'limit'),
  CONSTRAINT alert_policy_is_possible CHECK (window_seconds >= 0 AND calm_seconds >= 0 AND count_min >= 0),
  CONSTRAINT alert_policy_measured_has_threshold CHECK ((measure = 'event') = (threshold IS NULL))
) STRICT, WITHOUT ROWID;

-- Notices to send, written together with the change; unique, so that each is sent once.
CREATE TABLE detent_alert_notice (
  n        INTEGER NOT NULL,
  policy   TEXT    NOT NULL,
  scope    TEXT    NOT NULL,
  episode  INTEGER NOT NULL,
  kind     TEXT    NOT NULL,
  severity TEXT    NOT NULL,
  message  TEXT    NOT NULL,
  facts    TEXT,
  value    REAL,
  since    INTEGER NOT NULL,
  at       INTEGER NOT NULL,
  spread   INTEGER NOT NULL DEFAULT 0,
  CONSTRAINT alert_notice_pkey PRIMARY KEY (n),
  CONSTRAINT alert_notice_kind_known CHECK (kind = 'firing' OR kind = 'still' OR kind = 'resolved')
) STRICT;
CREATE UNIQUE INDEX detent_alert_notice_once ON detent_alert_notice (policy, scope, episode, kind) WHERE kind <> 'still';
CREATE INDEX detent_alert_notice_to_spread ON detent_alert_notice (n) WHERE NOT spread;
CREATE INDEX detent_alert_notice_at ON detent_alert_notice (at);

-- One row for each notice and sink, until it is sent.
CREATE TABLE detent_alert_delivery (
  notice_n    INTEGER NOT NULL,
  sink        TEXT    NOT NULL,
  state       TEXT    NOT NULL DEFAULT 'pending',
  tries       INTEGER NOT NULL DEFAULT 0,
  due_at      INTEGER NOT NULL,
  taken_until INTEGER,
  sent_at     INTEGER,
  error       TEXT,
  CONSTRAINT alert_delivery_pkey PRIMARY KEY (notice_n, sink),
  CONSTRAINT alert_delivery_state_known CHECK (state = 'pending' OR state = 'sent' OR state = 'summarised' OR state = 'failed'),
  CONSTRAINT alert_delivery_sent_has_time CHECK ((state = 'pending') = (sent_at IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX detent_alert_delivery_pending ON detent_alert_delivery (sink, notice_n) WHERE state = 'pending';
CREATE INDEX detent_alert_delivery_sent ON detent_alert_delivery (sink, sent_at) WHERE state = 'sent';

-- Finished jobs by minute.
CREATE TABLE detent_alert_tally (
  minute    INTEGER NOT NULL,
  queue     TEXT    NOT NULL,
  task      TEXT    NOT NULL,
  succeeded INTEGER NOT NULL,
  failed    INTEGER NOT NULL,
  CONSTRAINT alert_tally_pkey PRIMARY KEY (minute, queue, task)
) STRICT, WITHOUT ROWID;

-- The time up to which alert_tally is complete.
CREATE TABLE detent_alert_look (
  name TEXT    NOT NULL,
  at   INTEGER NOT NULL,
  CONSTRAINT alert_look_pkey PRIMARY KEY (name)
) STRICT, WITHOUT ROWID;

-- Batch runs, with their targets counted by state.
-- critical   why the run was stopped; a retry or another apply clears it
-- overwrite  whether the last action may overwrite what others have changed since the preview
-- conflicts  targets that were refused because others had changed them
CREATE TABLE detent_batch_run (
  id                    INTEGER NOT NULL,
  tenant                TEXT    NOT NULL DEFAULT '',
  batch                 TEXT    NOT NULL,
  payload               TEXT    NOT NULL,
  fingerprint           TEXT    NOT NULL,
  state                 TEXT    NOT NULL DEFAULT 'preview',
  actor                 TEXT    NOT NULL,
  reason                TEXT,
  correlation_id        TEXT,
  metadata              TEXT,
  tolerate_count        INTEGER,
  tolerate_share        REAL,
  total                 INTEGER NOT NULL DEFAULT 0,
  previewed             INTEGER NOT NULL DEFAULT 0,
  preview_failed        INTEGER NOT NULL DEFAULT 0,
  unchanged             INTEGER NOT NULL DEFAULT 0,
  queued                INTEGER NOT NULL DEFAULT 0,
  applying              INTEGER NOT NULL DEFAULT 0,
  applied               INTEGER NOT NULL DEFAULT 0,
  failed                INTEGER NOT NULL DEFAULT 0,
  rolled_back           INTEGER NOT NULL DEFAULT 0,
  outstanding           INTEGER NOT NULL DEFAULT 0,
  reverting             INTEGER NOT NULL DEFAULT 0,
  revert_failed         INTEGER NOT NULL DEFAULT 0,
  stuck                 INTEGER NOT NULL DEFAULT 0,
  mismatches            INTEGER NOT NULL DEFAULT 0,
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
  reconcile_no          INTEGER NOT NULL DEFAULT 0,
  reconcile_at          INTEGER,
  reconciled_at         INTEGER,
  moved_at              INTEGER NOT NULL,
  critical              TEXT,
  overwrite             INTEGER NOT NULL DEFAULT 0,
  conflicts             INTEGER NOT NULL DEFAULT 0,
  cancel_requested_at   INTEGER,
  cancel_requested_by   TEXT,
  cancel_reason         TEXT,
  CONSTRAINT batch_run_pkey PRIMARY KEY (id),
  CONSTRAINT batch_run_state_known CHECK ({{batch_run.state_known}}),
  CONSTRAINT batch_run_counts_possible CHECK (unchanged >= 0 AND unchanged <= previewed AND preview_failed >= 0 AND previewed + preview_failed <= total AND queued >= 0 AND applying >= 0 AND applied >= 0 AND failed >= 0 AND rolled_back >= 0 AND queued + applying + applied + failed + rolled_back <= previewed AND reverting >= 0 AND revert_failed >= 0 AND reverting + revert_failed <= applied AND outstanding BETWEEN 0 AND 1 AND stuck >= 0 AND mismatches >= 0),
  CONSTRAINT batch_run_times_in_order CHECK (queued_at >= created_at AND started_at >= queued_at AND finished_at >= started_at AND rolled_back_at >= rollback_requested_at),
  CONSTRAINT batch_run_preview_is_untouched CHECK (state <> 'preview' OR (queued_at IS NULL AND queued + applying + applied + failed + rolled_back + outstanding = 0)),
  CONSTRAINT batch_run_queued_has_time CHECK (state = 'preview' OR state = 'cancelled' OR (queued_at IS NOT NULL AND previewed_at IS NOT NULL)),
  CONSTRAINT batch_run_started_has_time CHECK (state = 'cancelled' OR (state IN ('preview', 'queued')) = (started_at IS NULL)),
  CONSTRAINT batch_run_rest_has_time CHECK (({{batch_run.state_is_open}}) = (finished_at IS NULL)),
  CONSTRAINT batch_run_applied_is_whole CHECK (state <> 'applied' OR queued + applying + failed = 0),
  CONSTRAINT batch_run_rolls_back_alone CHECK (rollback_requested_at IS NULL OR (queued + applying = 0 AND state IN ('applied', 'partial', 'rolled_back'))),
  CONSTRAINT batch_run_rolled_back_is_whole CHECK ((state = 'rolled_back') = (rolled_back_at IS NOT NULL) AND (state <> 'rolled_back' OR (rollback_requested_at IS NOT NULL AND applied + outstanding = 0))),
  CONSTRAINT batch_run_rollback_has_actor CHECK ((rollback_requested_at IS NULL) = (rollback_requested_by IS NULL)),
  CONSTRAINT batch_run_cancel_has_actor CHECK ((cancel_requested_at IS NULL) = (cancel_requested_by IS NULL) AND (state <> 'cancelled' OR cancel_requested_at IS NOT NULL)),
  CONSTRAINT batch_run_tolerates_something CHECK (tolerate_count >= 0 AND tolerate_share BETWEEN 0 AND 1)
) STRICT;
CREATE INDEX detent_batch_run_to_reconcile ON detent_batch_run (reconcile_at) WHERE reconcile_at IS NOT NULL;
CREATE INDEX detent_batch_run_by_end ON detent_batch_run (finished_at) WHERE finished_at IS NOT NULL;

-- Targets of batch runs. No index on a column that changes often, so that PostgreSQL updates rows in place (HOT).
-- conflict  what was found instead of the expected value, as JSON; cleared when the target is tried again
CREATE TABLE detent_target (
  run_id         INTEGER NOT NULL,
  n              INTEGER NOT NULL,
  ref            TEXT    NOT NULL,
  state          TEXT    NOT NULL DEFAULT 'preview',
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
  conflict       TEXT,
  CONSTRAINT target_pkey PRIMARY KEY (run_id, n),
  CONSTRAINT target_once UNIQUE (run_id, ref),
  CONSTRAINT target_state_known CHECK ({{target.state_known}}),
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

-- What was requested for a batch run, and how far it has come.
CREATE TABLE detent_batch_action (
  id         INTEGER NOT NULL,
  run_id     INTEGER NOT NULL,
  action     TEXT    NOT NULL,
  actor      TEXT    NOT NULL,
  reason     TEXT,
  metadata   TEXT,
  chosen     INTEGER,
  unchanged  INTEGER NOT NULL DEFAULT 0,
  job_id     INTEGER NOT NULL,
  cursor     INTEGER NOT NULL DEFAULT 0,
  moved      INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  done_at    INTEGER,
  CONSTRAINT batch_action_pkey PRIMARY KEY (id),
  CONSTRAINT batch_action_known CHECK (action IN ('apply', 'retry_failed', 'roll_back')),
  CONSTRAINT batch_action_goes_on CHECK (cursor >= 0 AND moved >= 0)
) STRICT;
CREATE UNIQUE INDEX detent_batch_action_one_open ON detent_batch_action (run_id) WHERE done_at IS NULL;
CREATE INDEX detent_batch_action_of_run ON detent_batch_action (run_id, id);
CREATE INDEX detent_batch_action_by_time ON detent_batch_action (created_at);

-- Targets that an action names one by one.
CREATE TABLE detent_batch_choice (
  action_id INTEGER NOT NULL,
  n         INTEGER NOT NULL,
  CONSTRAINT batch_choice_pkey PRIMARY KEY (action_id, n)
) STRICT, WITHOUT ROWID;

-- Checks of applied targets against the world.
CREATE TABLE detent_reconciliation (
  run_id     INTEGER NOT NULL,
  no         INTEGER NOT NULL,
  planned    INTEGER,
  actor      TEXT    NOT NULL,
  job_id     INTEGER NOT NULL,
  cursor     INTEGER NOT NULL DEFAULT 0,
  checked    INTEGER NOT NULL DEFAULT 0,
  mismatched INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  done_at    INTEGER,
  CONSTRAINT reconciliation_pkey PRIMARY KEY (run_id, no)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX detent_reconciliation_one_open ON detent_reconciliation (run_id) WHERE done_at IS NULL;

-- Targets that a reconciliation found changed.
CREATE TABLE detent_mismatch (
  run_id      INTEGER NOT NULL,
  n           INTEGER NOT NULL,
  no          INTEGER NOT NULL,
  expected    TEXT,
  actual      TEXT,
  found_at    INTEGER NOT NULL,
  checked_at  INTEGER NOT NULL,
  resolved_at INTEGER,
  CONSTRAINT mismatch_pkey PRIMARY KEY (run_id, n, no)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX detent_mismatch_one_open ON detent_mismatch (run_id, n) WHERE resolved_at IS NULL;

-- Environments of ops runs. A new one is made with its first run, and stays.
CREATE TABLE detent_ops_environment (
  id         INTEGER NOT NULL,
  project_id TEXT    NOT NULL,
  name       TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  CONSTRAINT ops_environment_pkey PRIMARY KEY (id),
  CONSTRAINT ops_environment_of_project UNIQUE (project_id, name),
  CONSTRAINT ops_environment_is_named CHECK (project_id <> '' AND name <> '')
) STRICT;

-- What an ops run has beside its job.
CREATE TABLE detent_ops_run (
  job_id          INTEGER NOT NULL,
  environment_id  INTEGER NOT NULL,
  git_sha         TEXT,
  git_ref         TEXT,
  key             TEXT,
  finish_metadata TEXT,
  CONSTRAINT ops_run_pkey PRIMARY KEY (job_id)
) STRICT;
CREATE INDEX detent_ops_run_of_environment ON detent_ops_run (environment_id, job_id);

-- Pipeline runs.
CREATE TABLE detent_pipeline_run (
  id               INTEGER NOT NULL,
  tenant           TEXT    NOT NULL DEFAULT '',
  name             TEXT    NOT NULL,
  payload          TEXT    NOT NULL,
  watermark        TEXT    NOT NULL,
  since            INTEGER,
  captured_at      INTEGER NOT NULL,
  is_full          INTEGER NOT NULL,
  is_forced        INTEGER NOT NULL DEFAULT 0,
  started_by       TEXT    NOT NULL,
  reason           TEXT,
  retires          INTEGER NOT NULL DEFAULT 0,
  queue            TEXT    NOT NULL,
  priority         INTEGER NOT NULL DEFAULT 0,
  replicas         INTEGER NOT NULL,
  portion_size     INTEGER NOT NULL,
  plan_job_id      INTEGER NOT NULL,
  state            TEXT    NOT NULL DEFAULT 'created',
  tolerated        INTEGER NOT NULL DEFAULT 0,
  partitions       INTEGER NOT NULL DEFAULT 0,
  parts_ended      INTEGER NOT NULL DEFAULT 0,
  parts_failed     INTEGER NOT NULL DEFAULT 0,
  portions         INTEGER NOT NULL DEFAULT 0,
  cut_key          TEXT    NOT NULL DEFAULT '',
  finisher_job_id  INTEGER,
  finisher_attempt INTEGER,
  finisher_tries   INTEGER NOT NULL DEFAULT 0,
  retired          INTEGER NOT NULL DEFAULT 0,
  error            TEXT,
  created_at       INTEGER NOT NULL,
  started_at       INTEGER,
  finished_at      INTEGER,
  moved_at         INTEGER NOT NULL,
  CONSTRAINT pipeline_run_pkey PRIMARY KEY (id),
  CONSTRAINT pipeline_run_state_known CHECK ({{pipeline_run.state_known}}),
  CONSTRAINT pipeline_run_counts_fit CHECK (parts_failed BETWEEN 0 AND parts_ended AND parts_ended <= partitions),
  CONSTRAINT pipeline_run_finished_has_time CHECK ((state IN ('completed', 'failed', 'cancelled')) = (finished_at IS NOT NULL)),
  CONSTRAINT pipeline_run_consolidates_when_all_ended CHECK (state IN ('created', 'workers_running', 'failed', 'cancelled') OR parts_ended = partitions),
  CONSTRAINT pipeline_run_force_has_reason CHECK (NOT is_forced OR (reason IS NOT NULL AND reason <> '')),
  CONSTRAINT pipeline_run_bounds CHECK (replicas BETWEEN 1 AND 16 AND portion_size >= 1)
) STRICT;
CREATE UNIQUE INDEX detent_pipeline_run_one_active ON detent_pipeline_run (tenant, watermark) WHERE state NOT IN ('completed', 'failed', 'cancelled');

-- Partitions of pipeline runs: a job with an offset.
CREATE TABLE detent_partition (
  run_id      INTEGER NOT NULL,
  n           INTEGER NOT NULL,
  key         TEXT    NOT NULL,
  payload     TEXT    NOT NULL,
  job_id      INTEGER NOT NULL,
  state       TEXT    NOT NULL DEFAULT 'pending',
  next_offset TEXT    NOT NULL DEFAULT '0',
  last_page   INTEGER NOT NULL DEFAULT 0,
  tries       INTEGER NOT NULL DEFAULT 0,
  pages       INTEGER NOT NULL DEFAULT 0,
  records     INTEGER NOT NULL DEFAULT 0,
  staged      INTEGER NOT NULL DEFAULT 0,
  error       TEXT,
  started_at  INTEGER,
  paged_at    INTEGER,
  ended_at    INTEGER,
  CONSTRAINT partition_pkey PRIMARY KEY (run_id, n),
  CONSTRAINT partition_one_per_key UNIQUE (run_id, key),
  CONSTRAINT partition_one_per_job UNIQUE (job_id),
  CONSTRAINT partition_state_known CHECK ({{partition.state_known}}),
  CONSTRAINT partition_completed_has_its_last_page CHECK (state <> 'completed' OR last_page),
  CONSTRAINT partition_pages_are_fetched CHECK (pages = 0 OR state IN ('fetching_pages', 'completed', 'failed')),
  CONSTRAINT partition_ended_has_time CHECK ((state IN ('completed', 'failed')) = (ended_at IS NOT NULL)),
  CONSTRAINT partition_staged_is_of_its_records CHECK (staged BETWEEN 0 AND records)
) STRICT;

-- Records of a run, one for each key, until they are consolidated.
CREATE TABLE detent_staged (
  run_id      INTEGER NOT NULL,
  key         TEXT    NOT NULL,
  data        TEXT    NOT NULL,
  partition_n INTEGER NOT NULL,
  CONSTRAINT staged_pkey PRIMARY KEY (run_id, key)
) STRICT, WITHOUT ROWID;

-- A range of staged records that one transaction consolidates.
CREATE TABLE detent_portion (
  run_id    INTEGER NOT NULL,
  n         INTEGER NOT NULL,
  first_key TEXT    NOT NULL,
  last_key  TEXT    NOT NULL,
  records   INTEGER NOT NULL,
  tries     INTEGER NOT NULL DEFAULT 0,
  job_id    INTEGER NOT NULL,
  attempt   INTEGER NOT NULL,
  done_at   INTEGER,
  CONSTRAINT portion_pkey PRIMARY KEY (run_id, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX detent_portion_open ON detent_portion (run_id, n) WHERE done_at IS NULL;

-- Keys that a pipeline has consolidated and not retired.
CREATE TABLE detent_seen (
  tenant    TEXT NOT NULL,
  watermark TEXT NOT NULL,
  key       TEXT NOT NULL,
  CONSTRAINT seen_pkey PRIMARY KEY (tenant, watermark, key)
) STRICT, WITHOUT ROWID;

-- How far each source has been ingested. It advances only together with the run that completes.
CREATE TABLE detent_watermark (
  tenant   TEXT    NOT NULL,
  name     TEXT    NOT NULL,
  value    INTEGER NOT NULL,
  run_id   INTEGER NOT NULL,
  moved_at INTEGER NOT NULL,
  CONSTRAINT watermark_pkey PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;

-- Tokens of the HTTP API. Only a hash of a token is stored. Revoked tokens stay on record.
CREATE TABLE detent_token (
  id           INTEGER NOT NULL,
  name         TEXT    NOT NULL,
  hash         TEXT    NOT NULL,
  role         TEXT    NOT NULL,
  tenant       TEXT,
  expires_at   INTEGER,
  created_at   INTEGER NOT NULL,
  created_by   TEXT    NOT NULL,
  revoked_at   INTEGER,
  revoked_by   TEXT,
  last_used_at INTEGER,
  CONSTRAINT token_pkey PRIMARY KEY (id),
  CONSTRAINT token_one_per_hash UNIQUE (hash),
  CONSTRAINT token_hash_is_sha256 CHECK (length(hash) = 64),
  CONSTRAINT token_role_known CHECK (role IN ('viewer', 'operator', 'admin')),
  CONSTRAINT token_has_name CHECK (name <> '' AND created_by <> ''),
  CONSTRAINT token_tenant_has_name CHECK (tenant <> ''),
  CONSTRAINT token_expires_later CHECK (expires_at > created_at),
  CONSTRAINT token_revoked_by_actor CHECK ((revoked_at IS NULL) = (revoked_by IS NULL))
) STRICT;
CREATE UNIQUE INDEX detent_token_one_per_name ON detent_token (name) WHERE revoked_at IS NULL;
CREATE INDEX detent_token_of_name ON detent_token (name, id);
CREATE INDEX detent_token_not_revoked ON detent_token (id) WHERE revoked_at IS NULL;

-- Workflows that have recorded something. What a workflow did is in workflow_step; a row here changes only at a park.
-- version         0 if only its generation is known
-- parks           how often it has parked in a row without a new record
-- parked_attempt  the attempt that parked last. The job is parked if that is its newest attempt, and it waits in `waiting`
-- payload         the arguments of this generation; NULL if they are those of the job
-- undo_of         the job whose steps this job undoes: it has the same generation, and no steps of its own but undos
-- undone_by       the job that undoes the steps of this generation
CREATE TABLE detent_workflow (
  job_id         INTEGER NOT NULL,
  version        INTEGER NOT NULL,
  generation     INTEGER NOT NULL DEFAULT 1,
  root_id        INTEGER NOT NULL,
  depth          INTEGER NOT NULL,
  forked_from    INTEGER,
  parks          INTEGER NOT NULL DEFAULT 0,
  parked_attempt INTEGER,
  parked_at      INTEGER,
  parked_for     TEXT,
  undoing_since  INTEGER,
  payload        TEXT,
  undo_cause     TEXT,
  undo_of        INTEGER,
  undone_by      INTEGER,
  seeds          TEXT,
  CONSTRAINT workflow_pkey PRIMARY KEY (job_id),
  CONSTRAINT workflow_counts_are_possible CHECK (version >= 0 AND generation >= 1 AND depth >= 0 AND parks >= 0),
  CONSTRAINT workflow_parked_has_time CHECK ((parked_attempt IS NULL) = (parked_at IS NULL)),
  CONSTRAINT workflow_undoes_another CHECK (undo_of <> job_id AND undone_by <> job_id)
) STRICT;

-- Recorded steps, each once. Rows are inserted once and never updated.
-- attempt  the attempt that has recorded it; 0 for a copy
CREATE TABLE detent_workflow_step (
  job_id      INTEGER NOT NULL,
  generation  INTEGER NOT NULL,
  path        TEXT    NOT NULL,
  seq         INTEGER NOT NULL,
  kind        TEXT    NOT NULL,
  scope       TEXT    NOT NULL DEFAULT '',
  attempt     INTEGER NOT NULL,
  fingerprint TEXT,
  beside      INTEGER NOT NULL DEFAULT 0,
  secret      INTEGER NOT NULL DEFAULT 0,
  undo        INTEGER NOT NULL DEFAULT 0,
  began_at    INTEGER NOT NULL,
  done_at     INTEGER NOT NULL,
  value       TEXT,
  error       TEXT,
  signal_name TEXT,
  signal_seq  INTEGER,
  CONSTRAINT workflow_step_pkey PRIMARY KEY (job_id, generation, path),
  CONSTRAINT workflow_step_ended_one_way CHECK ((value IS NULL) <> (error IS NULL)),
  CONSTRAINT workflow_step_kind_known CHECK ({{workflow_step.kind_known}}),
  CONSTRAINT workflow_step_signal_is_whole CHECK ((signal_name IS NULL) = (signal_seq IS NULL)),
  CONSTRAINT workflow_step_has_path CHECK (path <> '' AND generation >= 1 AND attempt >= 0)
) STRICT, WITHOUT ROWID;
-- Copies (attempt 0) name the signal that the step took of which they are copies: once in each generation.
CREATE UNIQUE INDEX detent_workflow_step_takes_signal_once ON detent_workflow_step (job_id, signal_name, signal_seq, CASE WHEN attempt = 0 THEN generation ELSE 0 END) WHERE signal_seq IS NOT NULL;

-- Steps that an attempt was about to call, written before the call.
CREATE TABLE detent_workflow_step_begun (
  job_id     INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  path       TEXT    NOT NULL,
  attempt    INTEGER NOT NULL,
  begun_at   INTEGER NOT NULL,
  secret     INTEGER NOT NULL DEFAULT 0,
  undo       INTEGER NOT NULL DEFAULT 0,
  CONSTRAINT workflow_step_begun_pkey PRIMARY KEY (job_id, generation, path, attempt)
) STRICT, WITHOUT ROWID;

-- What a parked workflow waits for. The park writes the rows, and the next attempt deletes them.
-- name     the name of a signal, or the path of the step that has spawned a group of children
-- settled  children in quarantine do not count as ended
CREATE TABLE detent_workflow_wait (
  job_id  INTEGER NOT NULL,
  n       INTEGER NOT NULL,
  kind    TEXT    NOT NULL,
  name    TEXT,
  settled INTEGER NOT NULL DEFAULT 0,
  due_at  INTEGER,
  tenant  TEXT    NOT NULL DEFAULT '',
  CONSTRAINT workflow_wait_pkey PRIMARY KEY (job_id, n),
  CONSTRAINT workflow_wait_kind_known CHECK ({{workflow_wait.kind_known}}),
  CONSTRAINT workflow_wait_has_name CHECK ((kind = 'time') = (name IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX detent_workflow_wait_for_signal ON detent_workflow_wait (name, job_id, n) WHERE kind = 'signal';
CREATE INDEX detent_workflow_wait_of_tenant ON detent_workflow_wait (tenant, job_id, n);
CREATE INDEX detent_workflow_wait_of_tenant_for_signal ON detent_workflow_wait (tenant, name, job_id, n) WHERE kind = 'signal';

-- Signals sent to workflows. Rows are inserted once and never updated; the step that has taken a signal names it.
CREATE TABLE detent_workflow_signal (
  job_id  INTEGER NOT NULL,
  name    TEXT    NOT NULL,
  seq     INTEGER NOT NULL,
  payload TEXT    NOT NULL,
  dedupe  TEXT,
  actor   TEXT    NOT NULL,
  reason  TEXT,
  sent_at INTEGER NOT NULL,
  CONSTRAINT workflow_signal_pkey PRIMARY KEY (job_id, name, seq),
  CONSTRAINT workflow_signal_has_actor CHECK (name <> '' AND actor <> '')
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX detent_workflow_signal_one_per_dedupe ON detent_workflow_signal (job_id, name, dedupe) WHERE dedupe IS NOT NULL;

-- The signals that no step has taken yet, kept by triggers: a look at a mailbox reads what is in it, however many were taken before.
CREATE TABLE detent_workflow_unread (
  job_id INTEGER NOT NULL,
  name   TEXT    NOT NULL,
  seq    INTEGER NOT NULL,
  CONSTRAINT workflow_unread_pkey PRIMARY KEY (job_id, name, seq)
) STRICT, WITHOUT ROWID;

-- Workflows to wake.
-- differs: stays empty, because no other writer can hold the job's row here, unless rows came from PostgreSQL by a move.
CREATE TABLE detent_wake_request (
  n      INTEGER NOT NULL,
  job_id INTEGER NOT NULL,
  CONSTRAINT wake_request_pkey PRIMARY KEY (n)
) STRICT;
CREATE INDEX detent_wake_request_of_job ON detent_wake_request (job_id);

-- Jobs that were cancelled, whose children are to be cancelled too: those from after_id on, up to until_id. The row goes when all
-- of them have been looked at.
-- root_id  the job with which the cancel began
-- undo     whether the children undo their steps
CREATE TABLE detent_tree_cancel (
  n        INTEGER NOT NULL,
  root_id  INTEGER NOT NULL,
  job_id   INTEGER NOT NULL,
  after_id INTEGER NOT NULL DEFAULT 0,
  until_id INTEGER NOT NULL,
  actor    TEXT    NOT NULL,
  reason   TEXT    NOT NULL,
  undo     INTEGER NOT NULL,
  CONSTRAINT tree_cancel_pkey PRIMARY KEY (n)
) STRICT;
CREATE INDEX detent_tree_cancel_of_root ON detent_tree_cancel (root_id);
CREATE INDEX detent_tree_cancel_of_job ON detent_tree_cancel (job_id);

-- Children that a workflow has spawned together: the ids from first_id on. `failed` counts failed and cancelled ones, `dead`
-- those in quarantine. A group is closed when all of its children were enqueued.
CREATE TABLE detent_child_group (
  parent_id  INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  path       TEXT    NOT NULL,
  first_id   INTEGER NOT NULL,
  total      INTEGER NOT NULL,
  succeeded  INTEGER NOT NULL DEFAULT 0,
  failed     INTEGER NOT NULL DEFAULT 0,
  dead       INTEGER NOT NULL DEFAULT 0,
  closed     INTEGER NOT NULL DEFAULT 0,
  CONSTRAINT child_group_pkey PRIMARY KEY (parent_id, generation, path),
  CONSTRAINT child_group_one_per_range UNIQUE (parent_id, first_id),
  CONSTRAINT child_group_counts_are_possible CHECK (succeeded >= 0 AND failed >= 0 AND dead >= 0 AND succeeded + failed + dead <= total)
) STRICT, WITHOUT ROWID;

-- Graphs of jobs. The job of a graph is claimed by no worker: it ends with the last of its nodes.
-- failed  how many nodes are failed or cancelled
CREATE TABLE detent_graph (
  job_id    INTEGER NOT NULL,
  name      TEXT    NOT NULL,
  total     INTEGER NOT NULL,
  succeeded INTEGER NOT NULL DEFAULT 0,
  failed    INTEGER NOT NULL DEFAULT 0,
  CONSTRAINT graph_pkey PRIMARY KEY (job_id),
  CONSTRAINT graph_counts_are_possible CHECK (total >= 1 AND succeeded >= 0 AND failed >= 0 AND succeeded + failed <= total)
) STRICT;

-- Nodes of graphs.
-- blocked  how many of its rows in job_after are not met. While there are any, the job is due never
-- outcome  succeeded, or failed if its job is failed or cancelled; NULL while it has not ended for good
-- lost_by  the node that ended without success, which is why this one was cancelled
CREATE TABLE detent_graph_node (
  graph_id INTEGER NOT NULL,
  name     TEXT    NOT NULL,
  job_id   INTEGER NOT NULL,
  blocked  INTEGER NOT NULL,
  outcome  TEXT,
  lost_by  INTEGER,
  CONSTRAINT graph_node_pkey PRIMARY KEY (graph_id, name),
  CONSTRAINT graph_node_of_one_job UNIQUE (job_id),
  CONSTRAINT graph_node_blocked_is_possible CHECK (blocked >= 0),
  CONSTRAINT graph_node_outcome_known CHECK (outcome IN ('succeeded', 'failed'))
) STRICT, WITHOUT ROWID;
CREATE INDEX detent_graph_node_lost ON detent_graph_node (lost_by) WHERE lost_by IS NOT NULL;

-- Which node follows which: a job starts after others have succeeded (`success`), or ended for good in any way (`end`).
-- met  whether that has happened. It stays so if the other job is retried
CREATE TABLE detent_job_after (
  job_id   INTEGER NOT NULL,
  after_id INTEGER NOT NULL,
  kind     TEXT    NOT NULL,
  met      INTEGER NOT NULL DEFAULT 0,
  CONSTRAINT job_after_pkey PRIMARY KEY (job_id, after_id, kind),
  CONSTRAINT job_after_kind_known CHECK (kind IN ('success', 'end')),
  CONSTRAINT job_after_an_earlier_job CHECK (after_id < job_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX detent_job_after_by_after ON detent_job_after (after_id);

-- Moves of the whole database: the one into another database (out), and the one by which this database was filled (in).
-- move_id   names the move in both databases
-- state     out: moving until the other database has everything, then moved. in: loading, then arrived
-- place     the other database, without a password
-- identity  the newest identity of the database from which the rows come
CREATE TABLE detent_database_move (
  direction TEXT    NOT NULL,
  move_id   TEXT    NOT NULL,
  state     TEXT    NOT NULL,
  place     TEXT    NOT NULL,
  identity  TEXT    NOT NULL,
  actor     TEXT    NOT NULL,
  reason    TEXT,
  began_at  INTEGER NOT NULL,
  ended_at  INTEGER,
  CONSTRAINT database_move_pkey PRIMARY KEY (direction),
  CONSTRAINT database_move_direction_known CHECK (direction IN ('in', 'out')),
  CONSTRAINT database_move_state_known CHECK (state IN ('moving', 'moved', 'loading', 'arrived')),
  CONSTRAINT database_move_ended_has_time CHECK ((state IN ('moved', 'arrived')) = (ended_at IS NOT NULL))
) STRICT, WITHOUT ROWID;

-- How far the tables of a database that is being filled have come.
-- last_key  the key of the last row that was copied, as JSON
CREATE TABLE detent_database_move_table (
  name     TEXT    NOT NULL,
  copied   INTEGER NOT NULL,
  last_key TEXT,
  complete INTEGER NOT NULL,
  CONSTRAINT database_move_table_pkey PRIMARY KEY (name)
) STRICT, WITHOUT ROWID;
