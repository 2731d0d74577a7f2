-- Workers, what they do besides jobs, and when.
--
-- worker         who is alive, as each says of itself once a second; nothing is decided by it: leases decide
-- service        one row per service of which one is enough: who does it, under which term, until when; and the row
--                `wake`, which says until when somebody waits for work, so that nobody is notified for nothing
-- schedule       what is enqueued by the clock, and when next; schedule_fire makes each tick happen once
-- operation      a bulk action by filter: what it was asked to do, and how far it is
-- recovery       queues whose silent jobs are stopped without a person's approval, and after how many seconds

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
  CONSTRAINT worker_pkey PRIMARY KEY (id)
);
COMMENT ON COLUMN detent.worker.queues IS 'JSON array of names; NULL is every queue. tasks likewise.';

CREATE TABLE detent.service (
  name       text        NOT NULL,
  holder     bigint      NOT NULL,
  term       bigint      NOT NULL,
  expires_at timestamptz NOT NULL,
  CONSTRAINT service_pkey PRIMARY KEY (name)
);

CREATE TABLE detent.schedule (
  name         text        NOT NULL,
  tenant       text        NOT NULL DEFAULT '',
  cron         text        NOT NULL,
  zone         text        NOT NULL,
  catch_up     text        NOT NULL,
  task         text        NOT NULL,
  payload      text        NOT NULL,
  queue        text        NOT NULL,
  priority     smallint    NOT NULL DEFAULT 0,
  attempts_max integer     NOT NULL,
  dead_letter  boolean     NOT NULL DEFAULT true,
  idempotent   boolean     NOT NULL DEFAULT true,
  next_at      timestamptz NOT NULL,
  last_at      timestamptz,
  paused_at    timestamptz,
  paused_by    text,
  reason       text,
  changed_at   timestamptz NOT NULL,
  CONSTRAINT schedule_pkey PRIMARY KEY (name),
  CONSTRAINT schedule_catch_up_known CHECK (catch_up IN ('latest', 'all', 'skip'))
);

CREATE TABLE detent.schedule_fire (
  schedule text        NOT NULL,
  fire_at  timestamptz NOT NULL,
  job_id   bigint,
  at       timestamptz NOT NULL,
  CONSTRAINT schedule_fire_pkey PRIMARY KEY (schedule, fire_at)
);
COMMENT ON COLUMN detent.schedule_fire.job_id IS 'NULL where the tick was missed and skipped.';

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
