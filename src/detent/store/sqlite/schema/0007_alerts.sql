-- Alerts: what is wrong now, what was said about it, and to whom it still has to be said.
--
-- alert            one row a policy and scope: firing, or resolved; each beginning is an episode of its own
-- alert_policy     what people said otherwise than the defaults that are in the code
-- alert_notice     what is to be told, written together with the change; unique, so that it is told once
-- alert_delivery   one row a notice and sink, until it is sent
-- alert_tally      jobs that came to rest, by the minute, counted by the service that looks at them
-- alert_look       up to when it has counted
--
-- The index on execution holds only what failed in a way that alerts count: what succeeds is not in it.

CREATE TABLE detent_alert (
  policy              TEXT             NOT NULL,
  scope               TEXT             NOT NULL DEFAULT '',
  severity            TEXT             NOT NULL,
  state               TEXT             NOT NULL,
  episode             INTEGER          NOT NULL DEFAULT 1,
  message             TEXT             NOT NULL,
  facts               TEXT,
  value               REAL,
  raised              INTEGER           NOT NULL DEFAULT 1,
  since               INTEGER      NOT NULL,
  last_at             INTEGER      NOT NULL,
  told_at             INTEGER      NOT NULL,
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
CREATE INDEX detent_alert_firing ON detent_alert (since, policy, scope) WHERE state = 'firing';
CREATE INDEX detent_alert_resolved ON detent_alert (resolved_at) WHERE resolved_at IS NOT NULL;

CREATE TABLE detent_alert_policy (
  name           TEXT             NOT NULL,
  measure        TEXT             NOT NULL,
  each           TEXT             NOT NULL,
  severity       TEXT             NOT NULL,
  threshold      REAL,
  window_seconds REAL NOT NULL,
  count_min      INTEGER          NOT NULL,
  calm_seconds   REAL NOT NULL,
  message        TEXT             NOT NULL,
  enabled        INTEGER          NOT NULL,
  changed_by     TEXT             NOT NULL,
  reason         TEXT,
  changed_at     INTEGER      NOT NULL,
  CONSTRAINT alert_policy_pkey PRIMARY KEY (name),
  CONSTRAINT alert_policy_severity_known CHECK (severity = 'info' OR severity = 'warning' OR severity = 'critical'),
  CONSTRAINT alert_policy_each_known CHECK (each = 'whole' OR each = 'queue' OR each = 'task' OR each = 'limit'),
  CONSTRAINT alert_policy_is_possible CHECK (window_seconds >= 0 AND calm_seconds >= 0 AND count_min >= 0),
  CONSTRAINT alert_policy_measured_has_threshold CHECK ((measure = 'event') = (threshold IS NULL))
) STRICT, WITHOUT ROWID;

CREATE TABLE detent_alert_notice (
  n        INTEGER           NOT NULL,
  policy   TEXT             NOT NULL,
  scope    TEXT             NOT NULL,
  episode  INTEGER          NOT NULL,
  kind     TEXT             NOT NULL,
  severity TEXT             NOT NULL,
  message  TEXT             NOT NULL,
  facts    TEXT,
  value    REAL,
  since    INTEGER      NOT NULL,
  at       INTEGER      NOT NULL,
  spread   INTEGER          NOT NULL DEFAULT 0,
  CONSTRAINT alert_notice_pkey PRIMARY KEY (n),
  CONSTRAINT alert_notice_kind_known CHECK (kind = 'firing' OR kind = 'still' OR kind = 'resolved')
) STRICT;
CREATE UNIQUE INDEX detent_alert_notice_once ON detent_alert_notice (policy, scope, episode, kind) WHERE kind <> 'still';
CREATE INDEX detent_alert_notice_to_spread ON detent_alert_notice (n) WHERE NOT spread;
CREATE INDEX detent_alert_notice_at ON detent_alert_notice (at);

CREATE TABLE detent_alert_delivery (
  notice_n    INTEGER      NOT NULL,
  sink        TEXT        NOT NULL,
  state       TEXT        NOT NULL DEFAULT 'pending',
  tries       INTEGER     NOT NULL DEFAULT 0,
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

CREATE TABLE detent_alert_tally (
  minute    INTEGER NOT NULL,
  queue     TEXT        NOT NULL,
  task      TEXT        NOT NULL,
  succeeded INTEGER      NOT NULL,
  failed    INTEGER      NOT NULL,
  CONSTRAINT alert_tally_pkey PRIMARY KEY (minute, queue, task)
) STRICT, WITHOUT ROWID;

CREATE TABLE detent_alert_look (
  name TEXT        NOT NULL,
  at   INTEGER NOT NULL,
  CONSTRAINT alert_look_pkey PRIMARY KEY (name)
) STRICT, WITHOUT ROWID;

CREATE INDEX detent_execution_troubled ON detent_execution (aborted_at) WHERE outcome = 'throttled' OR (outcome = 'expired' AND next_state <> 'pending');
CREATE INDEX detent_rate_limit_open ON detent_rate_limit (key) WHERE open_until IS NOT NULL;
