-- Limits: how many at once, and how many in which time, for all workers together.
--
-- rate_limit     one row a limit: its bucket of tokens as of refilled_at, its pause and its breaker
-- limit_member   whose jobs count: all of a task, or all of a queue
-- limit_slot     where to look for what runs under a limit. A row counts for as long as its job is running and at that
--                attempt, so nothing has to give it back and nobody can give it back twice; the next claim under the
--                limit sweeps away those that no longer count

CREATE TABLE detent_rate_limit (
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
  open_until      INTEGER,
  CONSTRAINT rate_limit_pkey PRIMARY KEY (key),
  CONSTRAINT rate_limit_is_possible CHECK (rate > 0 AND per > 0 AND burst >= 1 AND concurrency_max >= 1)
) STRICT, WITHOUT ROWID;

CREATE TABLE detent_limit_member (
  kind      TEXT NOT NULL,
  name      TEXT NOT NULL,
  limit_key TEXT NOT NULL,
  CONSTRAINT limit_member_pkey PRIMARY KEY (kind, name),
  CONSTRAINT limit_member_kind_known CHECK (kind IN ('task', 'queue'))
) STRICT, WITHOUT ROWID;

CREATE TABLE detent_limit_slot (
  limit_key TEXT    NOT NULL,
  job_id    INTEGER NOT NULL,
  attempt   INTEGER NOT NULL,
  CONSTRAINT limit_slot_pkey PRIMARY KEY (limit_key, job_id)
) STRICT, WITHOUT ROWID;
