-- Workers, what they do besides jobs, and when.
--
-- worker         who is alive, as each says of itself once a second; nothing is decided by it: leases decide
-- service        one row per service of which one is enough: who does it, under which term, until when
-- schedule       what is enqueued by the clock, and when next; schedule_fire makes each tick happen once
-- operation      a bulk action by filter: what it was asked to do, and how far it is
-- recovery       queues whose silent jobs are stopped without a person's approval, and after how many seconds

CREATE TABLE detent_worker (
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
) STRICT;

CREATE TABLE detent_service (
  name       TEXT        NOT NULL,
  holder     INTEGER      NOT NULL,
  term       INTEGER      NOT NULL,
  expires_at INTEGER NOT NULL,
  CONSTRAINT service_pkey PRIMARY KEY (name)
) STRICT, WITHOUT ROWID;

CREATE TABLE detent_schedule (
  name         TEXT        NOT NULL,
  tenant       TEXT        NOT NULL DEFAULT '',
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
  changed_at   INTEGER NOT NULL,
  CONSTRAINT schedule_pkey PRIMARY KEY (name),
  CONSTRAINT schedule_catch_up_known CHECK (catch_up IN ('latest', 'all', 'skip'))
) STRICT, WITHOUT ROWID;

CREATE TABLE detent_schedule_fire (
  schedule TEXT        NOT NULL,
  fire_at  INTEGER NOT NULL,
  job_id   INTEGER,
  at       INTEGER NOT NULL,
  CONSTRAINT schedule_fire_pkey PRIMARY KEY (schedule, fire_at)
) STRICT, WITHOUT ROWID;

CREATE TABLE detent_operation (
  id          INTEGER      NOT NULL,
  action      TEXT        NOT NULL,
  state       TEXT        NOT NULL DEFAULT 'running',
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
  CONSTRAINT operation_action_known CHECK (action IN ('retry', 'cancel', 'discard', 'move')),
  CONSTRAINT operation_state_known CHECK (state IN ('running', 'done', 'cancelled')),
  CONSTRAINT operation_finished_has_time CHECK ((state = 'running') = (finished_at IS NULL))
) STRICT;

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
