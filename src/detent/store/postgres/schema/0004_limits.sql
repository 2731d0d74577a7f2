-- Limits: how many at once, and how many in which time, for all workers together.
--
-- rate_limit     one row a limit: its bucket of tokens as of refilled_at, its pause and its breaker
-- limit_member   whose jobs count: all of a task, or all of a queue
-- limit_slot     where to look for what runs under a limit. A row counts for as long as its job is running and at that
--                attempt, so nothing has to give it back and nobody can give it back twice; the next claim under the
--                limit sweeps away those that no longer count

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
  CONSTRAINT rate_limit_pkey PRIMARY KEY (key),
  CONSTRAINT rate_limit_is_possible CHECK (rate > 0 AND per > 0 AND burst >= 1 AND concurrency_max >= 1)
);

CREATE TABLE detent.limit_member (
  kind      text NOT NULL,
  name      text NOT NULL,
  limit_key text NOT NULL,
  CONSTRAINT limit_member_pkey PRIMARY KEY (kind, name),
  CONSTRAINT limit_member_kind_known CHECK (kind IN ('task', 'queue'))
);

CREATE TABLE detent.limit_slot (
  limit_key text    NOT NULL,
  job_id    bigint  NOT NULL,
  attempt   integer NOT NULL,
  CONSTRAINT limit_slot_pkey PRIMARY KEY (limit_key, job_id)
);
