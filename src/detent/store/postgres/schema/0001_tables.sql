-- Tables, constraints and indexes. Functions, triggers and views are not here: `detent migrate` installs them.
--
-- A CHECK with a value in double braces depends on a lifecycle. `detent migrate` fills the value in, and replaces the CHECK if
-- the lifecycle has changed. JSON is kept as the text that the client sent, so that both databases return the same bytes.

CREATE SCHEMA IF NOT EXISTS detent;

CREATE FUNCTION detent.clock() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL SAFE
  AS $$ SELECT clock_timestamp() $$;
COMMENT ON FUNCTION detent.clock() IS 'The time that decides. Not now(): that is when a waiting transaction began.';

CREATE SEQUENCE detent.id_seq AS bigint;
CREATE SEQUENCE detent.lane_id_seq AS bigint;

-- Migrations that this database has taken.
CREATE TABLE detent.migration (
  version     integer     NOT NULL,
  name        text        NOT NULL,
  checksum    text        NOT NULL,
  oldest_code integer     NOT NULL,
  applied_at  timestamptz NOT NULL,
  CONSTRAINT migration_pkey PRIMARY KEY (version)
);

-- The release whose functions, triggers, views and state lists are in this database (one row). `complete` is false while
-- `detent migrate` puts them in place.
CREATE TABLE detent.installed (
  one         boolean     NOT NULL DEFAULT true,
  release     text        NOT NULL,
  fingerprint text        NOT NULL,
  complete    boolean     NOT NULL,
  at          timestamptz NOT NULL,
  CONSTRAINT installed_pkey PRIMARY KEY (one),
  CONSTRAINT installed_is_one_row CHECK (one)
);

-- Identities of this database. A row applies to jobs and runs with ids from first_id on, so a new identity does not change the
-- effect key of an existing job. Rows are only added.
CREATE TABLE detent.identity (
  n        integer     NOT NULL,
  identity text        NOT NULL,
  first_id bigint      NOT NULL,
  made_by  text        NOT NULL,
  reason   text,
  made_at  timestamptz NOT NULL,
  CONSTRAINT identity_pkey PRIMARY KEY (n),
  CONSTRAINT identity_is_long CHECK (length(identity) = 32)
);
INSERT INTO detent.identity (n, identity, first_id, made_by, made_at)
VALUES (1, replace(gen_random_uuid()::text, '-', ''), 0, 'migrate', detent.clock());

-- The secret with which tokens of signals are signed. Whoever has it can make tokens, so no role reads the table.
CREATE TABLE detent.signal_key (
  n       integer     NOT NULL,
  secret  text        NOT NULL,
  made_at timestamptz NOT NULL,
  CONSTRAINT signal_key_pkey PRIMARY KEY (n),
  CONSTRAINT signal_key_is_one CHECK (n = 1),
  CONSTRAINT signal_key_is_long CHECK (length(secret) = 64)
);
INSERT INTO detent.signal_key (n, secret, made_at)
VALUES (1, replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), detent.clock());

-- The version of each lifecycle that is attached to a table, so that an older program cannot replace a newer one.
CREATE TABLE detent.lifecycle (
  name        text        NOT NULL,
  version     integer     NOT NULL,
  table_name  text        NOT NULL,
  attached_at timestamptz NOT NULL,
  CONSTRAINT lifecycle_pkey PRIMARY KEY (name)
);

-- The fillfactor leaves room for a job's next versions on its own page: a claim changes many jobs of one page at once.
-- PostgreSQL reads every CHECK of a table anew in each statement that writes to it, so those of job and execution are short.
-- What a job is now. The columns from lease_id on are its running attempt.
-- effect_evidence     set before an attempt acts outside this database: the task's probe, or a marker in the other database,
--                    knows whether the effect has happened. NULL: no attempt has acted in such a way
-- result_dropped_at  when the result was dropped because the task's result_ttl was over
-- cost               tokens that the job takes from its task's limit when it starts; NULL is one
-- parent_id          the workflow that has spawned it
-- cancel_undo        false: the steps of the workflow are not undone, as the request for the cancel says
CREATE TABLE detent.job (
  id                  bigint      NOT NULL,
  tenant              text        NOT NULL DEFAULT '',
  task                text        NOT NULL,
  queue               text        NOT NULL DEFAULT 'default',
  priority            smallint    NOT NULL DEFAULT 0,
  due_at              timestamptz NOT NULL,
  expires_at          timestamptz,
  payload             text        NOT NULL,
  metadata            text,
  correlation_id      text,
  traceparent         text,
  run_id              bigint,
  nonce               bigint      NOT NULL,
  created_at          timestamptz NOT NULL,
  attempts_max        integer     NOT NULL,
  dead_letter         boolean     NOT NULL DEFAULT true,
  idempotent          boolean     NOT NULL DEFAULT true,
  limit_key           text,
  state               text        NOT NULL DEFAULT 'pending',
  attempt             integer     NOT NULL DEFAULT 0,
  spared              integer     NOT NULL DEFAULT 0,
  ended               integer     NOT NULL DEFAULT 0,
  result              text,
  error               text,
  finished_at         timestamptz,
  cancel_requested_at timestamptz,
  cancel_requested_by text,
  cancel_reason       text,
  lease_id            bigint,
  leased_at           timestamptz,
  started_at          timestamptz,
  committed_at        timestamptz,
  effect_evidence      text,
  result_dropped_at   timestamptz,
  cost                integer,
  parent_id           bigint,
  cancel_undo         boolean,
  CONSTRAINT job_pkey PRIMARY KEY (id),
  CONSTRAINT job_state_known CHECK ({{job.state_known}}),
  CONSTRAINT job_running_has_open_attempt CHECK (attempt - ended = (state = 'running')::integer),
  CONSTRAINT job_attempts_in_order CHECK (spared >= 0 AND spared <= attempt),
  CONSTRAINT job_attempts_max_positive CHECK (attempts_max >= 1),
  CONSTRAINT job_succeeded_is_committed CHECK (state <> 'succeeded' OR committed_at IS NOT NULL),
  CONSTRAINT job_finished_has_time CHECK (({{job.state_is_open}}) = (finished_at IS NULL)),
  CONSTRAINT job_running_has_lease CHECK (state <> 'running' OR (lease_id IS NOT NULL AND leased_at IS NOT NULL)),
  CONSTRAINT job_commit_is_of_a_running_or_succeeded_job CHECK (committed_at IS NULL OR state = ANY ('{running,succeeded}'::text[])),
  CONSTRAINT job_effect_evidence_known CHECK (effect_evidence = ANY ('{probe,marker}'::text[])),
  CONSTRAINT job_dropped_result_is_gone CHECK (result_dropped_at IS NULL OR (result IS NULL AND state = 'succeeded')),
  CONSTRAINT job_cost_is_possible CHECK (cost >= 1)
) WITH (fillfactor = 50);
CREATE INDEX job_by_run ON detent.job (run_id, created_at, id) WHERE run_id IS NOT NULL;
CREATE INDEX job_by_correlation ON detent.job (correlation_id, created_at, id) WHERE correlation_id IS NOT NULL;
CREATE INDEX job_by_parent ON detent.job (parent_id, id) WHERE parent_id IS NOT NULL;

-- Keys under which jobs were enqueued.
CREATE TABLE detent.job_key (
  tenant      text        NOT NULL DEFAULT '',
  key         text        NOT NULL,
  job_id      bigint      NOT NULL,
  fingerprint text        NOT NULL,
  expires_at  timestamptz,
  until_claim boolean     NOT NULL DEFAULT false,
  CONSTRAINT job_key_pkey PRIMARY KEY (tenant, key)
);
CREATE INDEX job_key_expiring ON detent.job_key (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX job_key_of_job ON detent.job_key (job_id);

-- Jobs by time of creation without an index entry for each: jobs that were created at the same time and share all but the last
-- ten bits of their ids.
CREATE TABLE detent.job_span (
  created_at timestamptz NOT NULL,
  block      bigint      NOT NULL,
  first_id   bigint      NOT NULL,
  last_id    bigint      NOT NULL,
  CONSTRAINT job_span_pkey PRIMARY KEY (created_at, block, first_id),
  CONSTRAINT job_span_is_within_its_block CHECK (first_id <= last_id AND first_id >> 10 = block AND last_id >> 10 = block)
);

-- Jobs that are failed or cancelled.
CREATE TABLE detent.unsuccessful (
  state  text   NOT NULL,
  job_id bigint NOT NULL,
  CONSTRAINT unsuccessful_pkey PRIMARY KEY (state, job_id)
);

-- Queues that were paused.
CREATE TABLE detent.queue (
  name      text        NOT NULL,
  paused_at timestamptz,
  paused_by text,
  reason    text,
  CONSTRAINT queue_pkey PRIMARY KEY (name)
);

-- A queue, a task and a version. The id of a lane is the id of its group times 2^32 plus a number of its own, so a claim steps from
-- one lane with ready jobs to the next within the ranges of its groups.
CREATE TABLE detent.lane_group (
  id      integer GENERATED BY DEFAULT AS IDENTITY,
  queue   text    NOT NULL,
  task    text    NOT NULL,
  version integer NOT NULL DEFAULT 0,
  CONSTRAINT lane_group_pkey PRIMARY KEY (id),
  CONSTRAINT lane_group_of_one_kind UNIQUE (queue, task, version)
);

-- A lane holds jobs of one queue, task, tenant, priority, limit key and version. A claim reads only the lanes that it may claim from.
-- limit_key  the limit that its jobs share; empty if that is the limit of their task
-- version    the version under which its workflows began; 0 if they have recorded nothing, and for all other jobs
CREATE TABLE detent.lane (
  id        bigint   NOT NULL,
  queue     text     NOT NULL,
  task      text     NOT NULL,
  tenant    text     NOT NULL,
  priority  smallint NOT NULL,
  limit_key text     NOT NULL DEFAULT '',
  version   integer  NOT NULL DEFAULT 0,
  CONSTRAINT lane_pkey PRIMARY KEY (id),
  CONSTRAINT lane_of_one_rank UNIQUE (queue, task, tenant, priority, limit_key, version)
);
-- In a collation of its own, so that only claims use it. While the table has no statistics, the look-up of one lane would use
-- it too, and read all lanes of the tenant: as many as it has limit keys.
CREATE INDEX lane_of_tenant ON detent.lane (tenant COLLATE "C", priority DESC, id);

-- Pending jobs that are due, one row each.
CREATE TABLE detent.ready (
  lane_id    bigint      NOT NULL,
  ready_at   timestamptz NOT NULL,
  job_id     bigint      NOT NULL,
  holds_key  boolean     NOT NULL DEFAULT false,
  expires_at timestamptz,
  CONSTRAINT ready_pkey PRIMARY KEY (lane_id, ready_at, job_id)
);
CREATE INDEX ready_expiring ON detent.ready (expires_at) WHERE expires_at IS NOT NULL;
COMMENT ON COLUMN detent.ready.ready_at IS 'Always the due_at of its job: so the row can be found from the job.';

-- Pending jobs that are due later or held back by a limit, one row each.
CREATE TABLE detent.waiting (
  job_id     bigint      NOT NULL,
  lane_id    bigint      NOT NULL,
  due_at     timestamptz NOT NULL,
  holds_key  boolean     NOT NULL DEFAULT false,
  expires_at timestamptz,
  limit_key  text,
  priority   smallint    NOT NULL,
  CONSTRAINT waiting_pkey PRIMARY KEY (job_id)
);
CREATE INDEX waiting_due ON detent.waiting (due_at, job_id) WHERE limit_key IS NULL;
CREATE INDEX waiting_limited ON detent.waiting (limit_key, priority DESC, due_at, job_id) WHERE limit_key IS NOT NULL;
CREATE INDEX waiting_expiring ON detent.waiting (expires_at) WHERE expires_at IS NOT NULL;

-- One row for each claim. The reaper looks for expired work only here.
CREATE TABLE detent.lease (
  id         bigint      NOT NULL,
  worker     text        NOT NULL,
  leased_at  timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  job_ids    bigint[]    NOT NULL,
  CONSTRAINT lease_pkey PRIMARY KEY (id)
);
CREATE INDEX lease_expiring ON detent.lease (expires_at);
ALTER TABLE detent.lease ALTER COLUMN job_ids SET STORAGE EXTERNAL;

-- One row for each ended attempt. Rows are inserted once and never updated.
CREATE TABLE detent.execution (
  job_id       bigint      NOT NULL,
  attempt      integer     NOT NULL,
  worker       text        NOT NULL,
  leased_at    timestamptz NOT NULL,
  started_at   timestamptz,
  committed_at timestamptz,
  done_at      timestamptz,
  aborted_at   timestamptz,
  outcome      text        NOT NULL,
  error        text,
  next_state   text        NOT NULL,
  next_due_at  timestamptz,
  counted      boolean     NOT NULL,
  suspect      boolean     NOT NULL DEFAULT false,
  CONSTRAINT execution_pkey PRIMARY KEY (job_id, attempt),
  CONSTRAINT execution_outcome_known CHECK ({{execution.outcome_known}}),
  CONSTRAINT execution_next_state_known CHECK ({{execution.next_state_known}}),
  CONSTRAINT execution_ended_one_way CHECK ((outcome = 'done') = (done_at IS NOT NULL) AND (outcome = 'done') = (aborted_at IS NULL)),
  CONSTRAINT execution_done_is_committed CHECK ((outcome = 'done') = (committed_at IS NOT NULL)),
  CONSTRAINT execution_done_succeeds CHECK ((outcome = 'done') = (next_state = 'succeeded')),
  CONSTRAINT execution_attempt_positive CHECK (attempt >= 1)
);
CREATE UNIQUE INDEX execution_one_commit ON detent.execution (job_id) WHERE committed_at IS NOT NULL;
CREATE INDEX execution_troubled ON detent.execution (aborted_at) WHERE outcome = 'throttled' OR (outcome = 'expired' AND next_state <> 'pending');
-- A workflow may have a million attempts that have parked: those that ended otherwise are found without them.
CREATE INDEX execution_unlucky ON detent.execution (job_id) WHERE outcome = 'crashed' OR outcome = 'expired' OR suspect;

-- Explicit moves, append-only. Together with execution it gives every past state.
CREATE TABLE detent.transition_log (
  n              bigint      GENERATED BY DEFAULT AS IDENTITY,
  tenant         text        NOT NULL DEFAULT '',
  entity         text        NOT NULL,
  entity_id      text        NOT NULL,
  job_id         bigint,
  attempt        integer     NOT NULL DEFAULT 0,
  from_state     text,
  to_state       text        NOT NULL,
  trigger        text        NOT NULL,
  actor          text        NOT NULL,
  reason         text,
  metadata       text,
  correlation_id text,
  forced         boolean     NOT NULL DEFAULT false,
  at             timestamptz NOT NULL,
  CONSTRAINT transition_log_pkey PRIMARY KEY (n),
  CONSTRAINT transition_log_has_actor CHECK (actor <> ''),
  CONSTRAINT transition_log_force_has_reason CHECK (NOT forced OR (reason IS NOT NULL AND reason <> ''))
);
CREATE INDEX transition_log_of_job ON detent.transition_log (job_id, n) WHERE job_id IS NOT NULL;
CREATE INDEX transition_log_of_entity ON detent.transition_log (entity, entity_id, n) WHERE job_id IS NULL;
CREATE INDEX transition_log_by_time ON detent.transition_log (at, n);
CREATE INDEX transition_log_by_actor ON detent.transition_log (actor, at, n);

-- Events that jobs have written.
CREATE TABLE detent.event (
  job_id  bigint      NOT NULL,
  seq     integer     NOT NULL,
  attempt integer     NOT NULL,
  level   text        NOT NULL,
  message text        NOT NULL,
  payload text,
  key     text,
  at      timestamptz NOT NULL,
  CONSTRAINT event_pkey PRIMARY KEY (job_id, seq),
  CONSTRAINT event_seq_positive CHECK (seq >= 1)
);
CREATE UNIQUE INDEX event_one_per_key ON detent.event (job_id, key) WHERE key IS NOT NULL;
-- The status of a workflow is found however much it has written to streams since.
CREATE INDEX event_status ON detent.event (job_id, seq) WHERE message = 'status';

-- Quarantined jobs.
CREATE TABLE detent.dead (
  job_id         bigint      NOT NULL,
  tenant         text        NOT NULL,
  queue          text        NOT NULL,
  task           text        NOT NULL,
  reason         text        NOT NULL,
  quarantined_at timestamptz NOT NULL,
  CONSTRAINT dead_pkey PRIMARY KEY (job_id)
);

-- Failures that no failure hook has seen yet, one row for each failed attempt.
CREATE TABLE detent.failure_report (
  job_id      bigint      NOT NULL,
  task        text        NOT NULL,
  taken_until timestamptz,
  attempt     integer     NOT NULL,
  CONSTRAINT failure_report_pkey PRIMARY KEY (job_id, attempt)
);
CREATE INDEX failure_report_of_task ON detent.failure_report (task, job_id, attempt);

-- Retention deletes only below the newest horizon, and every horizon is on record.
CREATE TABLE detent.horizon (
  n      bigint      GENERATED BY DEFAULT AS IDENTITY,
  before timestamptz NOT NULL,
  actor  text        NOT NULL,
  at     timestamptz NOT NULL,
  CONSTRAINT horizon_pkey PRIMARY KEY (n)
);
CREATE INDEX horizon_before ON detent.horizon (before);

-- Finished jobs by tenant, queue, task and state, as of the last fold.
CREATE TABLE detent.finished_count (
  tenant text   NOT NULL,
  queue  text   NOT NULL,
  task   text   NOT NULL,
  state  text   NOT NULL,
  jobs   bigint NOT NULL,
  CONSTRAINT finished_count_pkey PRIMARY KEY (tenant, queue, task, state)
);

-- The same for all tenants together.
CREATE TABLE detent.finished_total (
  queue text   NOT NULL,
  task  text   NOT NULL,
  state text   NOT NULL,
  jobs  bigint NOT NULL,
  CONSTRAINT finished_total_pkey PRIMARY KEY (queue, task, state)
);

-- Changes since then, except jobs that went from running to succeeded. The transaction that moves a job writes the row, so the
-- sum is exact.
CREATE TABLE detent.finished_delta (
  n      bigint GENERATED BY DEFAULT AS IDENTITY,
  tenant text   NOT NULL,
  queue  text   NOT NULL,
  task   text   NOT NULL,
  state  text   NOT NULL,
  jobs   bigint NOT NULL,
  CONSTRAINT finished_delta_pkey PRIMARY KEY (n)
);

-- Jobs that went from running to succeeded since then, one row for all that ended together.
CREATE TABLE detent.succeeded_batch (
  n       bigint   GENERATED BY DEFAULT AS IDENTITY,
  job_ids bigint[] NOT NULL,
  CONSTRAINT succeeded_batch_pkey PRIMARY KEY (n)
);
ALTER TABLE detent.succeeded_batch ALTER COLUMN job_ids SET STORAGE EXTERNAL;

-- Moves of jobs by hour, task, states and outcome, as of the last fold; kept for 31 days. Times are in microseconds:
-- held_us    in the previous state; for a pending job since it was due
-- ran_us     from the call of the function to the end of the attempt
-- waited_us  from when the job was due to its claim
-- bucket     a lower bound of how long the function ran; -1 if it was never called
CREATE TABLE detent.transition_hour (
  hour          timestamptz NOT NULL,
  task          text        NOT NULL,
  from_state    text        NOT NULL,
  to_state      text        NOT NULL,
  outcome       text        NOT NULL,
  bucket        bigint      NOT NULL,
  moves         bigint      NOT NULL,
  held_us       bigint      NOT NULL,
  held_us_max   bigint      NOT NULL,
  ran_us        bigint      NOT NULL,
  ran_us_max    bigint      NOT NULL,
  waited_us     bigint      NOT NULL,
  waited_us_max bigint      NOT NULL,
  CONSTRAINT transition_hour_pkey PRIMARY KEY (hour, task, from_state, to_state, outcome, bucket),
  CONSTRAINT transition_hour_adds_up CHECK (moves > 0 AND held_us_max >= 0 AND held_us >= held_us_max AND ran_us_max >= 0 AND ran_us >= ran_us_max AND waited_us_max >= 0 AND waited_us >= waited_us_max)
) WITH (fillfactor = 50);

-- The same without tasks, by minute (seconds = 60); hours that ended more than six hours ago are one row (3600). Kept for 31 days.
-- us  how long the function ran; for moves to running, how long the job had waited. bucket is its lower bound.
CREATE TABLE detent.transition_rate (
  seconds  integer     NOT NULL,
  at       timestamptz NOT NULL,
  to_state text        NOT NULL,
  outcome  text        NOT NULL,
  bucket   bigint      NOT NULL,
  moves    bigint      NOT NULL,
  us       bigint      NOT NULL,
  us_max   bigint      NOT NULL,
  CONSTRAINT transition_rate_pkey PRIMARY KEY (seconds, at, to_state, outcome, bucket),
  CONSTRAINT transition_rate_is_of_a_step CHECK (seconds = 60 OR seconds = 3600),
  CONSTRAINT transition_rate_adds_up CHECK (moves > 0 AND us_max >= 0 AND us >= us_max)
) WITH (fillfactor = 50);

-- Moves since then, except running to succeeded (see succeeded_batch).
CREATE TABLE detent.transition_delta (
  n          bigint      GENERATED BY DEFAULT AS IDENTITY,
  at         timestamptz NOT NULL,
  task       text        NOT NULL,
  from_state text        NOT NULL,
  to_state   text        NOT NULL,
  outcome    text        NOT NULL,
  held_us    bigint      NOT NULL,
  ran_us     bigint,
  waited_us  bigint      NOT NULL,
  CONSTRAINT transition_delta_pkey PRIMARY KEY (n)
);

-- Targets of outgoing webhooks, and up to which place in the record each has been told.
CREATE TABLE detent.webhook_target (
  name     text        NOT NULL,
  place    text        NOT NULL,
  moved_at timestamptz NOT NULL,
  CONSTRAINT webhook_target_pkey PRIMARY KEY (name)
);

-- Tasks whose successes a target of outgoing webhooks is told of. counts_fold puts these on the list of failure_report.
CREATE TABLE detent.announced_task (
  task text NOT NULL,
  CONSTRAINT announced_task_pkey PRIMARY KEY (task)
);

-- Workers, as each reports itself once a second. Nothing is decided by it: leases decide.
CREATE TABLE detent.worker (
  id         bigint      NOT NULL,
  name       text        NOT NULL,
  host       text        NOT NULL,
  pid        integer     NOT NULL,
  queues     text,
  tasks      text        NOT NULL,
  slots      integer     NOT NULL,
  running    integer     NOT NULL,
  stopping   boolean     NOT NULL DEFAULT false,
  started_at timestamptz NOT NULL,
  seen_at    timestamptz NOT NULL,
  drain_requested_at timestamptz,
  drain_requested_by text,
  drain_reason       text,
  versions   text        NOT NULL DEFAULT '{}',
  CONSTRAINT worker_pkey PRIMARY KEY (id),
  CONSTRAINT worker_drain_has_actor CHECK ((drain_requested_at IS NULL) = (drain_requested_by IS NULL))
);
COMMENT ON COLUMN detent.worker.queues IS 'JSON array of names; NULL is every queue. tasks likewise.';
COMMENT ON COLUMN detent.worker.versions IS 'JSON object: the versions of workflows that it can continue, by task.';

-- The last time at which a worker was alive, and the last gap of more than five seconds in which none was. A lease that expired
-- in the gap may belong to a living worker, which gets time to renew it.
CREATE TABLE detent.watch (
  one        boolean     NOT NULL DEFAULT true,
  watched_at timestamptz,
  gap_from   timestamptz,
  gap_to     timestamptz,
  CONSTRAINT watch_pkey PRIMARY KEY (one),
  CONSTRAINT watch_is_one_row CHECK (one)
);
INSERT INTO detent.watch (one) VALUES (true);

-- Services of which one instance is enough: its holder, its term, and when it expires. The row `wake` says until when a
-- worker waits for work, so that an enqueue notifies only if a worker waits.
CREATE TABLE detent.service (
  name       text        NOT NULL,
  holder     bigint      NOT NULL,
  term       bigint      NOT NULL,
  expires_at timestamptz NOT NULL,
  CONSTRAINT service_pkey PRIMARY KEY (name)
);

-- Fingerprints of what programs have declared, one row for each change; an empty fingerprint means that it was removed.
CREATE TABLE detent.declaration (
  kind        text        NOT NULL,
  name        text        NOT NULL,
  n           integer     NOT NULL,
  fingerprint text        NOT NULL,
  at          timestamptz NOT NULL,
  CONSTRAINT declaration_pkey PRIMARY KEY (kind, name, n),
  CONSTRAINT declaration_kind_known CHECK (kind IN ('schedule', 'limit')),
  CONSTRAINT declaration_is_numbered CHECK (n > 0)
);

-- Time limits that tasks declare: seconds after which a job is stale or stalled, and for which its result is kept. NULL: the
-- default. Workers write them.
CREATE TABLE detent.task_times (
  task          text             NOT NULL,
  stale_after   double precision,
  stalled_after double precision,
  result_ttl    double precision,
  CONSTRAINT task_times_pkey PRIMARY KEY (task),
  CONSTRAINT task_times_say_something CHECK (stale_after > 0 OR stalled_after > 0 OR result_ttl > 0)
);

-- Fields of tasks that are secret: paths in the arguments of their jobs. Workers write them.
CREATE TABLE detent.task_secret (
  task text NOT NULL,
  path text NOT NULL,
  CONSTRAINT task_secret_pkey PRIMARY KEY (task, path),
  CONSTRAINT task_secret_names_a_field CHECK (path <> '')
);

-- Queues whose silent jobs are recovered without a person's approval, and after how many seconds.
CREATE TABLE detent.recovery (
  queue         text             NOT NULL,
  stale_after   double precision,
  stalled_after double precision,
  changed_by    text             NOT NULL,
  reason        text,
  changed_at    timestamptz      NOT NULL,
  CONSTRAINT recovery_pkey PRIMARY KEY (queue),
  CONSTRAINT recovery_of_something CHECK (stale_after IS NOT NULL OR stalled_after IS NOT NULL)
);
COMMENT ON COLUMN detent.recovery.stale_after IS 'Seconds from claim to beginning; stalled_after: between signs of life. NULL is never.';

-- Schedules and their next tick.
CREATE TABLE detent.schedule (
  name           text        NOT NULL,
  tenant         text        NOT NULL DEFAULT '',
  cron           text        NOT NULL,
  zone           text        NOT NULL,
  catch_up       text        NOT NULL,
  task           text        NOT NULL,
  payload        text        NOT NULL,
  queue          text        NOT NULL,
  priority       smallint    NOT NULL DEFAULT 0,
  attempts_max   integer     NOT NULL,
  dead_letter    boolean     NOT NULL DEFAULT true,
  idempotent     boolean     NOT NULL DEFAULT true,
  next_at        timestamptz NOT NULL,
  last_at        timestamptz,
  paused_at      timestamptz,
  paused_by      text,
  reason         text,
  changed_at     timestamptz NOT NULL,
  unique_pending boolean     NOT NULL DEFAULT false,
  limit_key      text,
  cost           integer,
  CONSTRAINT schedule_pkey PRIMARY KEY (name),
  CONSTRAINT schedule_catch_up_known CHECK (catch_up IN ('latest', 'all', 'skip'))
);

-- Ticks of schedules; the primary key makes each tick happen once.
CREATE TABLE detent.schedule_fire (
  schedule text        NOT NULL,
  fire_at  timestamptz NOT NULL,
  job_id   bigint,
  at       timestamptz NOT NULL,
  CONSTRAINT schedule_fire_pkey PRIMARY KEY (schedule, fire_at)
);
COMMENT ON COLUMN detent.schedule_fire.job_id IS 'NULL where the tick was missed and skipped.';

-- Bulk actions by filter, and how far each has come.
CREATE TABLE detent.operation (
  id          bigint      NOT NULL,
  action      text        NOT NULL,
  state       text        NOT NULL DEFAULT 'running',
  filter      text        NOT NULL,
  argument    text,
  actor       text        NOT NULL,
  reason      text,
  until_id    bigint      NOT NULL,
  after_id    bigint      NOT NULL DEFAULT 0,
  looked_at   bigint      NOT NULL DEFAULT 0,
  changed     bigint      NOT NULL DEFAULT 0,
  refused     bigint      NOT NULL DEFAULT 0,
  created_at  timestamptz NOT NULL,
  finished_at timestamptz,
  CONSTRAINT operation_pkey PRIMARY KEY (id),
  CONSTRAINT operation_action_known CHECK (action IN ('retry', 'cancel', 'discard', 'move')),
  CONSTRAINT operation_state_known CHECK (state IN ('running', 'done', 'cancelled')),
  CONSTRAINT operation_finished_has_time CHECK ((state = 'running') = (finished_at IS NULL))
);
CREATE INDEX operation_by_state ON detent.operation (state, id);

-- Limits: the bucket of tokens as of refilled_at, the pause and the circuit breaker.
-- template  the limit whose bounds this one has, for limits by key; NULL: its own
-- held_at   paused by a person, until a person resumes it
CREATE TABLE detent.rate_limit (
  key             text             NOT NULL,
  rate            double precision,
  per             double precision NOT NULL,
  burst           double precision NOT NULL,
  concurrency_max integer,
  tokens          double precision NOT NULL,
  refilled_at     timestamptz      NOT NULL,
  paused_until    timestamptz,
  throttled       integer          NOT NULL DEFAULT 0,
  throttled_at    timestamptz,
  open_until      timestamptz,
  template        text,
  held_at         timestamptz,
  CONSTRAINT rate_limit_pkey PRIMARY KEY (key),
  CONSTRAINT rate_limit_is_possible CHECK (rate > 0 AND per > 0 AND burst >= 1 AND concurrency_max >= 1)
);
CREATE INDEX rate_limit_of_template ON detent.rate_limit (template) WHERE template IS NOT NULL;
CREATE INDEX rate_limit_open ON detent.rate_limit (key) WHERE open_until IS NOT NULL;

-- Tasks and queues to which a limit applies.
CREATE TABLE detent.limit_member (
  kind      text NOT NULL,
  name      text NOT NULL,
  limit_key text NOT NULL,
  CONSTRAINT limit_member_pkey PRIMARY KEY (kind, name),
  CONSTRAINT limit_member_kind_known CHECK (kind IN ('task', 'queue'))
);

-- Attempts that run under a limit. A row counts only while its job is running at that attempt, so nothing has to free it; the
-- next claim under the limit deletes stale rows. cost: tokens that the attempt has taken so far.
CREATE TABLE detent.limit_slot (
  limit_key text             NOT NULL,
  job_id    bigint           NOT NULL,
  attempt   integer          NOT NULL,
  cost      double precision NOT NULL DEFAULT 1,
  CONSTRAINT limit_slot_pkey PRIMARY KEY (limit_key, job_id),
  CONSTRAINT limit_slot_cost_is_possible CHECK (cost >= 0)
);

-- Alerts, one row for each policy and scope; each time one starts firing is an episode of its own.
CREATE TABLE detent.alert (
  policy              text             NOT NULL,
  scope               text             NOT NULL DEFAULT '',
  severity            text             NOT NULL,
  state               text             NOT NULL,
  episode             integer          NOT NULL DEFAULT 1,
  message             text             NOT NULL,
  facts               text,
  value               double precision,
  raised              bigint           NOT NULL DEFAULT 1,
  since               timestamptz      NOT NULL,
  last_at             timestamptz      NOT NULL,
  notified_at             timestamptz      NOT NULL,
  resolved_at         timestamptz,
  acknowledged_at     timestamptz,
  acknowledged_by     text,
  acknowledged_reason text,
  CONSTRAINT alert_pkey PRIMARY KEY (policy, scope),
  CONSTRAINT alert_state_known CHECK (state = 'firing' OR state = 'resolved'),
  CONSTRAINT alert_severity_known CHECK (severity = 'info' OR severity = 'warning' OR severity = 'critical'),
  CONSTRAINT alert_resolved_has_time CHECK ((state = 'resolved') = (resolved_at IS NOT NULL)),
  CONSTRAINT alert_acknowledged_by_somebody CHECK ((acknowledged_at IS NULL) = (acknowledged_by IS NULL)),
  CONSTRAINT alert_counts_from_one CHECK (episode >= 1 AND raised >= 1)
);
CREATE INDEX alert_by_state ON detent.alert (state, since, policy, scope);
CREATE INDEX alert_resolved ON detent.alert (resolved_at) WHERE resolved_at IS NOT NULL;

-- Alert policies that differ from the defaults in the code.
CREATE TABLE detent.alert_policy (
  name           text             NOT NULL,
  measure        text             NOT NULL,
  each           text             NOT NULL,
  severity       text             NOT NULL,
  threshold      double precision,
  window_seconds double precision NOT NULL,
  count_min      integer          NOT NULL,
  calm_seconds   double precision NOT NULL,
  message        text             NOT NULL,
  enabled        boolean          NOT NULL,
  changed_by     text             NOT NULL,
  reason         text,
  changed_at     timestamptz      NOT NULL,
  CONSTRAINT alert_policy_pkey PRIMARY KEY (name),
  CONSTRAINT alert_policy_severity_known CHECK (severity = 'info' OR severity = 'warning' OR severity = 'critical'),
  CONSTRAINT alert_policy_each_known CHECK (each = 'whole' OR each = 'queue' OR each = 'task' OR each = 'limit'),
  CONSTRAINT alert_policy_is_possible CHECK (window_seconds >= 0 AND calm_seconds >= 0 AND count_min >= 0),
  CONSTRAINT alert_policy_measured_has_threshold CHECK ((measure = 'event') = (threshold IS NULL))
);

-- Notices to send, written together with the change; unique, so that each is sent once.
CREATE TABLE detent.alert_notice (
  n        bigint           GENERATED BY DEFAULT AS IDENTITY,
  policy   text             NOT NULL,
  scope    text             NOT NULL,
  episode  integer          NOT NULL,
  kind     text             NOT NULL,
  severity text             NOT NULL,
  message  text             NOT NULL,
  facts    text,
  value    double precision,
  since    timestamptz      NOT NULL,
  at       timestamptz      NOT NULL,
  spread   boolean          NOT NULL DEFAULT false,
  CONSTRAINT alert_notice_pkey PRIMARY KEY (n),
  CONSTRAINT alert_notice_kind_known CHECK (kind = 'firing' OR kind = 'still' OR kind = 'resolved')
);
CREATE UNIQUE INDEX alert_notice_once ON detent.alert_notice (policy, scope, episode, kind) WHERE kind <> 'still';
CREATE INDEX alert_notice_to_spread ON detent.alert_notice (n) WHERE NOT spread;
CREATE INDEX alert_notice_at ON detent.alert_notice (at);

-- One row for each notice and sink, until it is sent.
CREATE TABLE detent.alert_delivery (
  notice_n    bigint      NOT NULL,
  sink        text        NOT NULL,
  state       text        NOT NULL DEFAULT 'pending',
  tries       integer     NOT NULL DEFAULT 0,
  due_at      timestamptz NOT NULL,
  taken_until timestamptz,
  sent_at     timestamptz,
  error       text,
  CONSTRAINT alert_delivery_pkey PRIMARY KEY (notice_n, sink),
  CONSTRAINT alert_delivery_state_known CHECK (state = 'pending' OR state = 'sent' OR state = 'summarised' OR state = 'failed'),
  CONSTRAINT alert_delivery_sent_has_time CHECK ((state = 'pending') = (sent_at IS NULL))
);
CREATE INDEX alert_delivery_pending ON detent.alert_delivery (sink, notice_n) WHERE state = 'pending';
CREATE INDEX alert_delivery_sent ON detent.alert_delivery (sink, sent_at) WHERE state = 'sent';

-- Finished jobs by minute.
CREATE TABLE detent.alert_tally (
  minute    timestamptz NOT NULL,
  queue     text        NOT NULL,
  task      text        NOT NULL,
  succeeded bigint      NOT NULL,
  failed    bigint      NOT NULL,
  CONSTRAINT alert_tally_pkey PRIMARY KEY (minute, queue, task)
);

-- The time up to which alert_tally is complete.
CREATE TABLE detent.alert_look (
  name text        NOT NULL,
  at   timestamptz NOT NULL,
  CONSTRAINT alert_look_pkey PRIMARY KEY (name)
);

-- Batch runs, with their targets counted by state.
-- critical   why the run was stopped; a retry or another apply clears it
-- overwrite  whether the last action may overwrite what others have changed since the preview
-- conflicts  targets that were refused because others had changed them
CREATE TABLE detent.batch_run (
  id                    bigint           NOT NULL,
  tenant                text             NOT NULL DEFAULT '',
  batch                 text             NOT NULL,
  payload               text             NOT NULL,
  fingerprint           text             NOT NULL,
  state                 text             NOT NULL DEFAULT 'preview',
  actor                 text             NOT NULL,
  reason                text,
  correlation_id        text,
  metadata              text,
  tolerate_count        integer,
  tolerate_share        double precision,
  total                 integer          NOT NULL DEFAULT 0,
  previewed             integer          NOT NULL DEFAULT 0,
  preview_failed        integer          NOT NULL DEFAULT 0,
  unchanged             integer          NOT NULL DEFAULT 0,
  queued                integer          NOT NULL DEFAULT 0,
  applying              integer          NOT NULL DEFAULT 0,
  applied               integer          NOT NULL DEFAULT 0,
  failed                integer          NOT NULL DEFAULT 0,
  rolled_back           integer          NOT NULL DEFAULT 0,
  outstanding           integer          NOT NULL DEFAULT 0,
  reverting             integer          NOT NULL DEFAULT 0,
  revert_failed         integer          NOT NULL DEFAULT 0,
  stuck                 integer          NOT NULL DEFAULT 0,
  mismatches            integer          NOT NULL DEFAULT 0,
  error                 text,
  created_at            timestamptz      NOT NULL,
  planned_at            timestamptz,
  previewed_at          timestamptz,
  queued_at             timestamptz,
  started_at            timestamptz,
  finished_at           timestamptz,
  rollback_requested_at timestamptz,
  rollback_requested_by text,
  rollback_reason       text,
  rolled_back_at        timestamptz,
  reconcile_no          integer          NOT NULL DEFAULT 0,
  reconcile_at          timestamptz,
  reconciled_at         timestamptz,
  moved_at              timestamptz      NOT NULL,
  critical              text,
  overwrite             boolean          NOT NULL DEFAULT false,
  conflicts             integer          NOT NULL DEFAULT 0,
  cancel_requested_at   timestamptz,
  cancel_requested_by   text,
  cancel_reason         text,
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
) WITH (fillfactor = 50);
CREATE INDEX batch_run_to_reconcile ON detent.batch_run (reconcile_at) WHERE reconcile_at IS NOT NULL;
CREATE INDEX batch_run_by_end ON detent.batch_run (finished_at) WHERE finished_at IS NOT NULL;

-- Targets of batch runs. No index on a column that changes often, so that PostgreSQL updates rows in place (HOT).
-- conflict  what was found instead of the expected value, as JSON; cleared when the target is tried again
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
  conflict       text,
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
) WITH (fillfactor = 60);
CREATE UNIQUE INDEX target_apply_job ON detent.target (apply_job_id) WHERE apply_job_id IS NOT NULL;
CREATE UNIQUE INDEX target_revert_job ON detent.target (revert_job_id) WHERE revert_job_id IS NOT NULL;

-- What was requested for a batch run, and how far it has come.
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
CREATE INDEX batch_action_by_time ON detent.batch_action (created_at);
COMMENT ON COLUMN detent.batch_action.chosen IS 'How many targets were named one by one (batch_choice); NULL: all that the action is for.';

-- Targets that an action names one by one.
CREATE TABLE detent.batch_choice (
  action_id bigint  NOT NULL,
  n         integer NOT NULL,
  CONSTRAINT batch_choice_pkey PRIMARY KEY (action_id, n)
);

-- Checks of applied targets against the world.
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

-- Targets that a reconciliation found changed.
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

-- Environments of ops runs. A new one is made with its first run, and stays.
CREATE TABLE detent.ops_environment (
  id         bigint      NOT NULL,
  project_id text        NOT NULL,
  name       text        NOT NULL,
  created_at timestamptz NOT NULL,
  CONSTRAINT ops_environment_pkey PRIMARY KEY (id),
  CONSTRAINT ops_environment_of_project UNIQUE (project_id, name),
  CONSTRAINT ops_environment_is_named CHECK (project_id <> '' AND name <> '')
);

-- What an ops run has beside its job.
CREATE TABLE detent.ops_run (
  job_id          bigint NOT NULL,
  environment_id  bigint NOT NULL,
  git_sha         text,
  git_ref         text,
  key             text,
  finish_metadata text,
  CONSTRAINT ops_run_pkey PRIMARY KEY (job_id)
);
CREATE INDEX ops_run_of_environment ON detent.ops_run (environment_id, job_id);

-- Pipeline runs.
CREATE TABLE detent.pipeline_run (
  id               bigint      NOT NULL,
  tenant           text        NOT NULL DEFAULT '',
  name             text        NOT NULL,
  payload          text        NOT NULL,
  watermark        text        NOT NULL,
  since            timestamptz,
  captured_at      timestamptz NOT NULL,
  is_full          boolean     NOT NULL,
  is_forced        boolean     NOT NULL DEFAULT false,
  started_by       text        NOT NULL,
  reason           text,
  retires          boolean     NOT NULL DEFAULT false,
  queue            text        NOT NULL,
  priority         smallint    NOT NULL DEFAULT 0,
  replicas         integer     NOT NULL,
  portion_size     integer     NOT NULL,
  plan_job_id      bigint      NOT NULL,
  state            text        NOT NULL DEFAULT 'created',
  tolerated        integer     NOT NULL DEFAULT 0,
  partitions       integer     NOT NULL DEFAULT 0,
  parts_ended      integer     NOT NULL DEFAULT 0,
  parts_failed     integer     NOT NULL DEFAULT 0,
  portions         integer     NOT NULL DEFAULT 0,
  cut_key          text        COLLATE "C" NOT NULL DEFAULT '',
  finisher_job_id  bigint,
  finisher_attempt integer,
  finisher_tries   integer     NOT NULL DEFAULT 0,
  retired          bigint      NOT NULL DEFAULT 0,
  error            text,
  created_at       timestamptz NOT NULL,
  started_at       timestamptz,
  finished_at      timestamptz,
  moved_at         timestamptz NOT NULL,
  CONSTRAINT pipeline_run_pkey PRIMARY KEY (id),
  CONSTRAINT pipeline_run_state_known CHECK ({{pipeline_run.state_known}}),
  CONSTRAINT pipeline_run_counts_fit CHECK (parts_failed BETWEEN 0 AND parts_ended AND parts_ended <= partitions),
  CONSTRAINT pipeline_run_finished_has_time CHECK ((state IN ('completed', 'failed', 'cancelled')) = (finished_at IS NOT NULL)),
  CONSTRAINT pipeline_run_consolidates_when_all_ended CHECK (state IN ('created', 'workers_running', 'failed', 'cancelled') OR parts_ended = partitions),
  CONSTRAINT pipeline_run_force_has_reason CHECK (NOT is_forced OR (reason IS NOT NULL AND reason <> '')),
  CONSTRAINT pipeline_run_bounds CHECK (replicas BETWEEN 1 AND 16 AND portion_size >= 1)
);
CREATE UNIQUE INDEX pipeline_run_one_active ON detent.pipeline_run (tenant, watermark) WHERE state NOT IN ('completed', 'failed', 'cancelled');

-- Partitions of pipeline runs: a job with an offset.
CREATE TABLE detent.partition (
  run_id      bigint      NOT NULL,
  n           integer     NOT NULL,
  key         text        NOT NULL,
  payload     text        NOT NULL,
  job_id      bigint      NOT NULL,
  state       text        NOT NULL DEFAULT 'pending',
  next_offset text        NOT NULL DEFAULT '0',
  last_page   boolean     NOT NULL DEFAULT false,
  tries       integer     NOT NULL DEFAULT 0,
  pages       integer     NOT NULL DEFAULT 0,
  records     bigint      NOT NULL DEFAULT 0,
  staged      bigint      NOT NULL DEFAULT 0,
  error       text,
  started_at  timestamptz,
  paged_at    timestamptz,
  ended_at    timestamptz,
  CONSTRAINT partition_pkey PRIMARY KEY (run_id, n),
  CONSTRAINT partition_one_per_key UNIQUE (run_id, key),
  CONSTRAINT partition_one_per_job UNIQUE (job_id),
  CONSTRAINT partition_state_known CHECK ({{partition.state_known}}),
  CONSTRAINT partition_completed_has_its_last_page CHECK (state <> 'completed' OR last_page),
  CONSTRAINT partition_pages_are_fetched CHECK (pages = 0 OR state IN ('fetching_pages', 'completed', 'failed')),
  CONSTRAINT partition_ended_has_time CHECK ((state IN ('completed', 'failed')) = (ended_at IS NOT NULL)),
  CONSTRAINT partition_staged_is_of_its_records CHECK (staged BETWEEN 0 AND records)
);

-- Records of a run, one for each key, until they are consolidated.
CREATE TABLE detent.staged (
  run_id      bigint  NOT NULL,
  key         text    COLLATE "C" NOT NULL,
  data        text    NOT NULL,
  partition_n integer NOT NULL,
  CONSTRAINT staged_pkey PRIMARY KEY (run_id, key)
);

-- A range of staged records that one transaction consolidates.
CREATE TABLE detent.portion (
  run_id    bigint      NOT NULL,
  n         integer     NOT NULL,
  first_key text        COLLATE "C" NOT NULL,
  last_key  text        COLLATE "C" NOT NULL,
  records   bigint      NOT NULL,
  tries     integer     NOT NULL DEFAULT 0,
  job_id    bigint      NOT NULL,
  attempt   integer     NOT NULL,
  done_at   timestamptz,
  CONSTRAINT portion_pkey PRIMARY KEY (run_id, n)
);
CREATE INDEX portion_open ON detent.portion (run_id, n) WHERE done_at IS NULL;

-- Keys that a pipeline has consolidated and not retired.
CREATE TABLE detent.seen (
  tenant    text NOT NULL,
  watermark text NOT NULL,
  key       text COLLATE "C" NOT NULL,
  CONSTRAINT seen_pkey PRIMARY KEY (tenant, watermark, key)
);

-- How far each source has been ingested. It advances only together with the run that completes.
CREATE TABLE detent.watermark (
  tenant   text        NOT NULL,
  name     text        NOT NULL,
  value    timestamptz NOT NULL,
  run_id   bigint      NOT NULL,
  moved_at timestamptz NOT NULL,
  CONSTRAINT watermark_pkey PRIMARY KEY (tenant, name)
);

-- Tokens of the HTTP API. Only a hash of a token is stored. Revoked tokens stay on record.
CREATE TABLE detent.token (
  id           bigint      NOT NULL,
  name         text        NOT NULL,
  hash         text        NOT NULL,
  role         text        NOT NULL,
  tenant       text,
  expires_at   timestamptz,
  created_at   timestamptz NOT NULL,
  created_by   text        NOT NULL,
  revoked_at   timestamptz,
  revoked_by   text,
  last_used_at timestamptz,
  CONSTRAINT token_pkey PRIMARY KEY (id),
  CONSTRAINT token_one_per_hash UNIQUE (hash),
  CONSTRAINT token_hash_is_sha256 CHECK (length(hash) = 64),
  CONSTRAINT token_role_known CHECK (role IN ('viewer', 'operator', 'admin')),
  CONSTRAINT token_has_name CHECK (name <> '' AND created_by <> ''),
  CONSTRAINT token_tenant_has_name CHECK (tenant <> ''),
  CONSTRAINT token_expires_later CHECK (expires_at > created_at),
  CONSTRAINT token_revoked_by_actor CHECK ((revoked_at IS NULL) = (revoked_by IS NULL))
);
CREATE UNIQUE INDEX token_one_per_name ON detent.token (name) WHERE revoked_at IS NULL;
CREATE INDEX token_of_name ON detent.token (name, id);
CREATE INDEX token_not_revoked ON detent.token (id) WHERE revoked_at IS NULL;
COMMENT ON COLUMN detent.token.tenant IS 'The only tenant that it reaches; NULL is all.';

-- What a workflow has beside its job: one row for each that has recorded something.
-- parks           how often in a row it has parked without a new record
-- parked_attempt  the attempt that parked last; the job is parked if that is its last one and it has a row in waiting
-- parked_for      for people: what it waits for
-- payload         the arguments of this generation; NULL if they are those of the job
-- undo_cause      why the steps of this generation are being undone
-- undo_of         the job whose steps this job undoes: it has the same generation, and no steps of its own but undos
-- undone_by       the job that undoes the steps of this generation
CREATE TABLE detent.workflow (
  job_id         bigint      NOT NULL,
  version        integer     NOT NULL,
  generation     integer     NOT NULL DEFAULT 1,
  root_id        bigint      NOT NULL,
  depth          integer     NOT NULL,
  forked_from    bigint,
  parks          integer     NOT NULL DEFAULT 0,
  parked_attempt integer,
  parked_at      timestamptz,
  parked_for     text,
  undoing_since  timestamptz,
  payload        text,
  undo_cause     text,
  undo_of        bigint,
  undone_by      bigint,
  seeds          text,
  CONSTRAINT workflow_pkey PRIMARY KEY (job_id),
  CONSTRAINT workflow_counts_are_possible CHECK (version >= 0 AND generation >= 1 AND depth >= 0 AND parks >= 0),
  CONSTRAINT workflow_parked_has_time CHECK ((parked_attempt IS NULL) = (parked_at IS NULL)),
  CONSTRAINT workflow_undoes_another CHECK (undo_of <> job_id AND undone_by <> job_id)
) WITH (fillfactor = 70);

-- Steps of workflows, one row for each that is done. Rows are inserted once and never updated.
-- path         scope/name, with a number or a key; it identifies the step
-- scope        the path of the scope that the step belongs to; empty for the workflow itself
-- fingerprint  a digest of the arguments
-- beside       another step of the same scope was in flight at the same time
-- secret       the value is shown to nobody
-- undo         the step has an undo
-- signal_seq   the signal that the step has taken, with its name
CREATE TABLE detent.workflow_step (
  job_id      bigint      NOT NULL,
  generation  integer     NOT NULL,
  path        text        COLLATE "C" NOT NULL,
  seq         integer     NOT NULL,
  kind        text        NOT NULL,
  scope       text        COLLATE "C" NOT NULL DEFAULT '',
  attempt     integer     NOT NULL,
  fingerprint text,
  beside      boolean     NOT NULL DEFAULT false,
  secret      boolean     NOT NULL DEFAULT false,
  undo        boolean     NOT NULL DEFAULT false,
  began_at    timestamptz NOT NULL,
  done_at     timestamptz NOT NULL,
  value       text,
  error       text,
  signal_name text        COLLATE "C",
  signal_seq  bigint,
  CONSTRAINT workflow_step_pkey PRIMARY KEY (job_id, generation, path),
  CONSTRAINT workflow_step_ended_one_way CHECK ((value IS NULL) <> (error IS NULL)),
  CONSTRAINT workflow_step_kind_known CHECK ({{workflow_step.kind_known}}),
  CONSTRAINT workflow_step_signal_is_whole CHECK ((signal_name IS NULL) = (signal_seq IS NULL)),
  CONSTRAINT workflow_step_has_path CHECK (path <> '' AND generation >= 1 AND attempt >= 0)
);
-- Copies (attempt 0) name the signal that the step took of which they are copies: once in each generation.
CREATE UNIQUE INDEX workflow_step_takes_signal_once ON detent.workflow_step (job_id, signal_name, signal_seq, (CASE WHEN attempt = 0 THEN generation ELSE 0 END)) WHERE signal_seq IS NOT NULL;

-- Steps that were about to be called and must not be repeated blindly, one row for each attempt. Rows are inserted once and
-- never updated.
CREATE TABLE detent.workflow_step_begun (
  job_id     bigint      NOT NULL,
  generation integer     NOT NULL,
  path       text        COLLATE "C" NOT NULL,
  attempt    integer     NOT NULL,
  begun_at   timestamptz NOT NULL,
  secret     boolean     NOT NULL DEFAULT false,
  undo       boolean     NOT NULL DEFAULT false,
  CONSTRAINT workflow_step_begun_pkey PRIMARY KEY (job_id, generation, path, attempt)
);

-- What parked workflows wait for. The next attempt deletes the rows.
-- name     the signal, or the path of the step that spawned the children; NULL for a time
-- settled  whether children in quarantine do not count as ended
-- tenant   that of the job, for lists
CREATE TABLE detent.workflow_wait (
  job_id  bigint      NOT NULL,
  n       integer     NOT NULL,
  kind    text        NOT NULL,
  name    text        COLLATE "C",
  settled boolean     NOT NULL DEFAULT false,
  due_at  timestamptz,
  tenant  text        NOT NULL DEFAULT '',
  CONSTRAINT workflow_wait_pkey PRIMARY KEY (job_id, n),
  CONSTRAINT workflow_wait_kind_known CHECK ({{workflow_wait.kind_known}}),
  CONSTRAINT workflow_wait_has_name CHECK ((kind = 'time') = (name IS NULL))
);
CREATE INDEX workflow_wait_for_signal ON detent.workflow_wait (name, job_id, n) WHERE kind = 'signal';
CREATE INDEX workflow_wait_of_tenant ON detent.workflow_wait (tenant, job_id, n);
CREATE INDEX workflow_wait_of_tenant_for_signal ON detent.workflow_wait (tenant, name, job_id, n) WHERE kind = 'signal';

-- The mailboxes of workflows. Rows are inserted once and never updated.
CREATE TABLE detent.workflow_signal (
  job_id  bigint      NOT NULL,
  name    text        COLLATE "C" NOT NULL,
  seq     bigint      NOT NULL,
  payload text        NOT NULL,
  dedupe  text,
  actor   text        NOT NULL,
  reason  text,
  sent_at timestamptz NOT NULL,
  CONSTRAINT workflow_signal_pkey PRIMARY KEY (job_id, name, seq),
  CONSTRAINT workflow_signal_has_actor CHECK (name <> '' AND actor <> '')
);
CREATE UNIQUE INDEX workflow_signal_one_per_dedupe ON detent.workflow_signal (job_id, name, dedupe) WHERE dedupe IS NOT NULL;

-- The signals that no step has taken yet, kept by triggers: a look at a mailbox reads what is in it, however many were taken before.
CREATE TABLE detent.workflow_unread (
  job_id bigint NOT NULL,
  name   text   COLLATE "C" NOT NULL,
  seq    bigint NOT NULL,
  CONSTRAINT workflow_unread_pkey PRIMARY KEY (job_id, name, seq)
);

-- Jobs that could not be woken at once, since others had them locked. Numbered, so that a request that another transaction has not
-- committed yet keeps nobody waiting.
CREATE TABLE detent.wake_request (
  n      bigint GENERATED BY DEFAULT AS IDENTITY,
  job_id bigint NOT NULL,
  CONSTRAINT wake_request_pkey PRIMARY KEY (n)
);
CREATE INDEX wake_request_of_job ON detent.wake_request (job_id);

-- Jobs that were cancelled, whose children are to be cancelled too: those from after_id on, up to until_id. The row goes when all
-- of them have been looked at.
-- root_id  the job with which the cancel began
-- undo     whether the children undo their steps
CREATE TABLE detent.tree_cancel (
  n        bigint  GENERATED BY DEFAULT AS IDENTITY,
  root_id  bigint  NOT NULL,
  job_id   bigint  NOT NULL,
  after_id bigint  NOT NULL DEFAULT 0,
  until_id bigint  NOT NULL,
  actor    text    NOT NULL,
  reason   text    NOT NULL,
  undo     boolean NOT NULL,
  CONSTRAINT tree_cancel_pkey PRIMARY KEY (n)
);
CREATE INDEX tree_cancel_of_root ON detent.tree_cancel (root_id);
CREATE INDEX tree_cancel_of_job ON detent.tree_cancel (job_id);

-- Children of workflows, spawned by one step: the jobs from first_id on.
-- failed  those that are failed or cancelled
-- dead    those in quarantine
-- closed  whether all of them are enqueued
CREATE TABLE detent.child_group (
  parent_id  bigint  NOT NULL,
  generation integer NOT NULL,
  path       text    COLLATE "C" NOT NULL,
  first_id   bigint  NOT NULL,
  total      integer NOT NULL,
  succeeded  integer NOT NULL DEFAULT 0,
  failed     integer NOT NULL DEFAULT 0,
  dead       integer NOT NULL DEFAULT 0,
  closed     boolean NOT NULL DEFAULT false,
  CONSTRAINT child_group_pkey PRIMARY KEY (parent_id, generation, path),
  CONSTRAINT child_group_one_per_range UNIQUE (parent_id, first_id),
  CONSTRAINT child_group_counts_are_possible CHECK (succeeded >= 0 AND failed >= 0 AND dead >= 0 AND succeeded + failed + dead <= total)
) WITH (fillfactor = 50);

-- Graphs of jobs. The job of a graph is claimed by no worker: it ends with the last of its nodes.
-- failed  how many nodes are failed or cancelled
CREATE TABLE detent.graph (
  job_id    bigint  NOT NULL,
  name      text    NOT NULL,
  total     integer NOT NULL,
  succeeded integer NOT NULL DEFAULT 0,
  failed    integer NOT NULL DEFAULT 0,
  CONSTRAINT graph_pkey PRIMARY KEY (job_id),
  CONSTRAINT graph_counts_are_possible CHECK (total >= 1 AND succeeded >= 0 AND failed >= 0 AND succeeded + failed <= total)
) WITH (fillfactor = 50);

-- Nodes of graphs.
-- blocked  how many of its rows in job_after are not met. While there are any, the job is due never
-- outcome  succeeded, or failed if its job is failed or cancelled; NULL while it has not ended for good
-- lost_by  the node that ended without success, which is why this one was cancelled
CREATE TABLE detent.graph_node (
  graph_id bigint  NOT NULL,
  name     text    COLLATE "C" NOT NULL,
  job_id   bigint  NOT NULL,
  blocked  integer NOT NULL,
  outcome  text,
  lost_by  bigint,
  CONSTRAINT graph_node_pkey PRIMARY KEY (graph_id, name),
  CONSTRAINT graph_node_of_one_job UNIQUE (job_id),
  CONSTRAINT graph_node_blocked_is_possible CHECK (blocked >= 0),
  CONSTRAINT graph_node_outcome_known CHECK (outcome IN ('succeeded', 'failed'))
) WITH (fillfactor = 50);
CREATE INDEX graph_node_lost ON detent.graph_node (lost_by) WHERE lost_by IS NOT NULL;

-- Which node follows which: a job starts after others have succeeded (`success`), or ended for good in any way (`end`).
-- met  whether that has happened. It stays so if the other job is retried
CREATE TABLE detent.job_after (
  job_id   bigint  NOT NULL,
  after_id bigint  NOT NULL,
  kind     text    NOT NULL,
  met      boolean NOT NULL DEFAULT false,
  CONSTRAINT job_after_pkey PRIMARY KEY (job_id, after_id, kind),
  CONSTRAINT job_after_kind_known CHECK (kind IN ('success', 'end')),
  CONSTRAINT job_after_an_earlier_job CHECK (after_id < job_id)
) WITH (fillfactor = 50);
CREATE INDEX job_after_by_after ON detent.job_after (after_id);

-- Moves of the whole database: the one into another database (out), and the one by which this database was filled (in).
-- move_id   names the move in both databases
-- state     out: moving until the other database has everything, then moved. in: loading, then arrived
-- place     the other database, without a password
-- identity  the newest identity of the database from which the rows come
CREATE TABLE detent.database_move (
  direction text        NOT NULL,
  move_id   text        NOT NULL,
  state     text        NOT NULL,
  place     text        NOT NULL,
  identity  text        NOT NULL,
  actor     text        NOT NULL,
  reason    text,
  began_at  timestamptz NOT NULL,
  ended_at  timestamptz,
  CONSTRAINT database_move_pkey PRIMARY KEY (direction),
  CONSTRAINT database_move_direction_known CHECK (direction IN ('in', 'out')),
  CONSTRAINT database_move_state_known CHECK (state IN ('moving', 'moved', 'loading', 'arrived')),
  CONSTRAINT database_move_ended_has_time CHECK ((state IN ('moved', 'arrived')) = (ended_at IS NOT NULL))
);

-- How far the tables of a database that is being filled have come.
-- last_key  the key of the last row that was copied, as JSON
CREATE TABLE detent.database_move_table (
  name     text    NOT NULL,
  copied   bigint  NOT NULL,
  last_key text,
  complete boolean NOT NULL,
  CONSTRAINT database_move_table_pkey PRIMARY KEY (name)
);
