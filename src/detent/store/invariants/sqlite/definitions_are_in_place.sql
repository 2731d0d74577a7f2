-- L2, R3: every view and index is there, letter for letter, and Detent's tables have no trigger but Detent's own.
-- Generated from the migrations by `python -m detent.store.invariants.generate`; a test keeps it equal.
-- differs: PostgreSQL has functions, rules and row security.
WITH wanted (type, name, text) AS (VALUES
    ('index', 'detent_alert_delivery_pending', 'CREATE INDEX detent_alert_delivery_pending ON detent_alert_delivery (sink, notice_n) WHERE state = ''pending'''),
    ('index', 'detent_alert_delivery_sent', 'CREATE INDEX detent_alert_delivery_sent ON detent_alert_delivery (sink, sent_at) WHERE state = ''sent'''),
    ('index', 'detent_alert_firing', 'CREATE INDEX detent_alert_firing ON detent_alert (since, policy, scope) WHERE state = ''firing'''),
    ('index', 'detent_alert_notice_at', 'CREATE INDEX detent_alert_notice_at ON detent_alert_notice (at)'),
    ('index', 'detent_alert_notice_to_spread', 'CREATE INDEX detent_alert_notice_to_spread ON detent_alert_notice (n) WHERE NOT spread'),
    ('index', 'detent_alert_resolved', 'CREATE INDEX detent_alert_resolved ON detent_alert (resolved_at) WHERE resolved_at IS NOT NULL'),
    ('index', 'detent_batch_action_by_time', 'CREATE INDEX detent_batch_action_by_time ON detent_batch_action (created_at)'),
    ('index', 'detent_batch_action_of_run', 'CREATE INDEX detent_batch_action_of_run ON detent_batch_action (run_id, id)'),
    ('index', 'detent_batch_run_by_end', 'CREATE INDEX detent_batch_run_by_end ON detent_batch_run (finished_at) WHERE finished_at IS NOT NULL'),
    ('index', 'detent_batch_run_to_reconcile', 'CREATE INDEX detent_batch_run_to_reconcile ON detent_batch_run (reconcile_at) WHERE reconcile_at IS NOT NULL'),
    ('index', 'detent_execution_troubled', 'CREATE INDEX detent_execution_troubled ON detent_execution (aborted_at) WHERE outcome = ''throttled'' OR (outcome = ''expired'' AND next_state <> ''pending'')'),
    ('index', 'detent_horizon_before', 'CREATE INDEX detent_horizon_before ON detent_horizon (before)'),
    ('index', 'detent_job_by_correlation', 'CREATE INDEX detent_job_by_correlation ON detent_job (correlation_id, created_at, id) WHERE correlation_id IS NOT NULL'),
    ('index', 'detent_job_by_run', 'CREATE INDEX detent_job_by_run ON detent_job (run_id, created_at, id) WHERE run_id IS NOT NULL'),
    ('index', 'detent_job_key_expiring', 'CREATE INDEX detent_job_key_expiring ON detent_job_key (expires_at) WHERE expires_at IS NOT NULL'),
    ('index', 'detent_job_key_of_job', 'CREATE INDEX detent_job_key_of_job ON detent_job_key (job_id)'),
    ('index', 'detent_lane_of_tenant', 'CREATE INDEX detent_lane_of_tenant ON detent_lane (tenant, priority DESC, id)'),
    ('index', 'detent_lease_expiring', 'CREATE INDEX detent_lease_expiring ON detent_lease (expires_at)'),
    ('index', 'detent_ops_run_of_environment', 'CREATE INDEX detent_ops_run_of_environment ON detent_ops_run (environment_id, job_id)'),
    ('index', 'detent_portion_open', 'CREATE INDEX detent_portion_open ON detent_portion (run_id, n) WHERE done_at IS NULL'),
    ('index', 'detent_rate_limit_of_template', 'CREATE INDEX detent_rate_limit_of_template ON detent_rate_limit (template) WHERE template IS NOT NULL'),
    ('index', 'detent_rate_limit_open', 'CREATE INDEX detent_rate_limit_open ON detent_rate_limit (key) WHERE open_until IS NOT NULL'),
    ('index', 'detent_ready_expiring', 'CREATE INDEX detent_ready_expiring ON detent_ready (expires_at) WHERE expires_at IS NOT NULL'),
    ('index', 'detent_transition_log_by_actor', 'CREATE INDEX detent_transition_log_by_actor ON detent_transition_log (actor, at, n)'),
    ('index', 'detent_transition_log_by_time', 'CREATE INDEX detent_transition_log_by_time ON detent_transition_log (at, n)'),
    ('index', 'detent_transition_log_of_entity', 'CREATE INDEX detent_transition_log_of_entity ON detent_transition_log (entity, entity_id, n) WHERE job_id IS NULL'),
    ('index', 'detent_transition_log_of_job', 'CREATE INDEX detent_transition_log_of_job ON detent_transition_log (job_id, n) WHERE job_id IS NOT NULL'),
    ('index', 'detent_untold_of_task', 'CREATE INDEX detent_untold_of_task ON detent_untold (task, job_id, attempt)'),
    ('index', 'detent_waiting_due', 'CREATE INDEX detent_waiting_due ON detent_waiting (due_at, job_id) WHERE limit_key IS NULL'),
    ('index', 'detent_waiting_expiring', 'CREATE INDEX detent_waiting_expiring ON detent_waiting (expires_at) WHERE expires_at IS NOT NULL'),
    ('index', 'detent_waiting_limited', 'CREATE INDEX detent_waiting_limited ON detent_waiting (limit_key, priority DESC, due_at, job_id) WHERE limit_key IS NOT NULL'),
    ('view', 'detent_alert_event', 'CREATE VIEW detent_alert_event AS
  SELECT policy, scope, severity, message, facts, value, last_at AS at FROM detent_alert WHERE 0'),
    ('view', 'detent_attempt_figures', 'CREATE VIEW detent_attempt_figures AS
  SELECT r.task, r.outcome, sum(r.moves) AS attempts, sum(r.ran_us) / nullif(sum(r.called), 0) / 1e6 AS mean_seconds,
         min(CASE WHEN r.so_far >= r.of_all * 0.5 THEN r.mean_us END) / 1e6 AS p50_seconds,
         min(CASE WHEN r.so_far >= r.of_all * 0.95 THEN r.mean_us END) / 1e6 AS p95_seconds,
         max(CASE WHEN r.called > 0 THEN r.longest_us END) / 1e6 AS max_seconds
    FROM (SELECT s.*, s.ran_us / nullif(s.called, 0) AS mean_us,
                 sum(s.called) OVER (PARTITION BY s.task, s.outcome ORDER BY s.bucket) AS so_far,
                 sum(s.called) OVER (PARTITION BY s.task, s.outcome) AS of_all
            FROM (SELECT c.task, c.outcome, c.bucket, sum(c.moves) AS moves, sum(CASE WHEN c.bucket >= 0 THEN c.moves ELSE 0 END) AS called,
                         sum(c.ran_us) * 1.0 AS ran_us, max(c.ran_us_max) * 1.0 AS longest_us
                    FROM detent_transition_counts c
                   WHERE c.outcome <> '''' AND c.hour >= (CAST(strftime(''%s'', ''now'') AS INTEGER) / 3600 - 24) * 3600000000
                   GROUP BY c.task, c.outcome, c.bucket) s) r
   GROUP BY r.task, r.outcome'),
    ('view', 'detent_attempt_times', 'CREATE VIEW detent_attempt_times AS
  SELECT e.job_id, e.attempt, j.task, j.queue, j.tenant, e.outcome, e.worker, e.leased_at, e.started_at, e.committed_at,
         coalesce(e.done_at, e.aborted_at) AS ended_at,
         (e.started_at - e.leased_at) / 1000000.0 AS held_seconds,
         (coalesce(e.done_at, e.aborted_at) - e.started_at) / 1000000.0 AS run_seconds
    FROM detent_execution e JOIN detent_job j ON j.id = e.job_id'),
    ('view', 'detent_batch_counts', 'CREATE VIEW detent_batch_counts AS
  SELECT a.created_at AS at, b.batch, 1 AS applies, 0 AS runs, 0 AS applied, 0 AS failed, -1 AS bucket, 0 AS ran_us
    FROM detent_batch_action a JOIN detent_batch_run b ON b.id = a.run_id
   WHERE a.action = ''apply''
  UNION ALL
  SELECT x.at, x.batch, 0, 1, x.applied, x.failed, CASE WHEN x.ran_us IS NULL THEN -1 WHEN x.ran_us < 10 THEN x.ran_us ELSE CAST(substr(''101012121215151518181818222222222227272727272733333333333339393939393939394747474747474747475656565656565656565656566868686868686868686868686868828282828282828282828282828282828282'',
           2 * CAST(substr(x.ran_us, 1, 2) AS INTEGER) - 19, 2) || substr(''0000000000000000'', 1, length(x.ran_us) - 2) AS INTEGER) END, x.ran_us
    FROM (SELECT b.finished_at AS at, b.batch, b.applied + b.rolled_back AS applied, b.failed,
                 coalesce(min(max(b.finished_at - b.started_at, 0), 8640000000000), 0) AS ran_us
            FROM detent_batch_run b WHERE b.finished_at IS NOT NULL) x'),
    ('view', 'detent_batch_figures', 'CREATE VIEW detent_batch_figures AS
  SELECT r.batch, sum(r.applies) AS applies, sum(r.runs) AS runs, sum(r.applied) AS applied, sum(r.failed) AS failed,
         sum(r.applied) * 1.0 / nullif(sum(r.applied + r.failed), 0) AS success_rate,
         sum(r.ran_us) / nullif(sum(r.runs), 0) / 1e6 AS mean_seconds,
         min(CASE WHEN r.so_far >= r.of_all * 0.5 THEN r.mean_us END) / 1e6 AS p50_seconds,
         min(CASE WHEN r.so_far >= r.of_all * 0.95 THEN r.mean_us END) / 1e6 AS p95_seconds,
         max(CASE WHEN r.runs > 0 THEN r.longest_us END) / 1e6 AS max_seconds, coalesce(max(t.retries), 0) AS retries
    FROM (SELECT s.*, s.ran_us / nullif(s.runs, 0) AS mean_us, sum(s.runs) OVER (PARTITION BY s.batch ORDER BY s.bucket) AS so_far,
                 sum(s.runs) OVER (PARTITION BY s.batch) AS of_all
            FROM (SELECT c.batch, c.bucket, sum(c.applies) AS applies, sum(c.runs) AS runs, sum(c.applied) AS applied,
                         sum(c.failed) AS failed, sum(c.ran_us) * 1.0 AS ran_us, max(c.ran_us) * 1.0 AS longest_us
                    FROM detent_batch_counts c
                   WHERE c.at >= (CAST(strftime(''%s'', ''now'') AS INTEGER) / 3600 - 24) * 3600000000
                   GROUP BY c.batch, c.bucket) s) r
    LEFT JOIN detent_task_figures t ON t.task = r.batch || ''.apply''
   GROUP BY r.batch'),
    ('view', 'detent_executions', 'CREATE VIEW detent_executions AS
  SELECT e.job_id, e.attempt, CASE WHEN e.outcome = ''done'' THEN ''done'' ELSE ''aborted'' END AS state, e.worker,
         e.leased_at, e.started_at, e.committed_at, e.done_at, e.aborted_at, e.outcome, e.error,
         e.next_state, e.next_due_at, e.counted, NULL AS lease_id, NULL AS expires_at
    FROM detent_execution e
  UNION ALL
  SELECT j.id, j.attempt,
         CASE WHEN j.committed_at IS NOT NULL THEN ''committed'' WHEN j.started_at IS NOT NULL THEN ''in_progress'' ELSE ''leased'' END,
         l.worker, j.leased_at, j.started_at, j.committed_at, NULL, NULL, NULL, NULL, NULL, NULL, NULL, l.id, l.expires_at
    FROM detent_lease l , json_each(l.job_ids) AS held
    JOIN detent_job j ON j.id = held.value AND j.lease_id = l.id AND j.state = ''running'''),
    ('view', 'detent_job_counts', 'CREATE VIEW detent_job_counts AS
  SELECT l.tenant, l.queue, l.task, ''pending'' AS state, sum(q.jobs) AS jobs
    FROM (SELECT r.lane_id, count(*) AS jobs FROM detent_ready r GROUP BY r.lane_id
          UNION ALL
          SELECT w.lane_id, count(*) FROM detent_waiting w GROUP BY w.lane_id) q
    CROSS JOIN detent_lane l ON l.id = q.lane_id
   GROUP BY l.tenant, l.queue, l.task
  UNION ALL
  SELECT j.tenant, j.queue, j.task, ''running'', count(*)
    FROM detent_lease l CROSS JOIN json_each(l.job_ids) held
    CROSS JOIN detent_job j ON j.id = held.value AND j.lease_id = l.id AND j.state = ''running''
   GROUP BY j.tenant, j.queue, j.task
  UNION ALL
  SELECT f.tenant, f.queue, f.task, f.state, sum(f.jobs)
    FROM (SELECT tenant, queue, task, state, jobs FROM detent_finished_count
          UNION ALL
          SELECT tenant, queue, task, state, jobs FROM detent_finished_delta
          UNION ALL
          SELECT j.tenant, j.queue, j.task, j.state, count(*)
            FROM detent_succeeded_batch b CROSS JOIN json_each(b.job_ids) u
            CROSS JOIN detent_job j ON j.id = u.value AND j.state = ''succeeded''
           GROUP BY j.tenant, j.queue, j.task, j.state) f
   GROUP BY f.tenant, f.queue, f.task, f.state HAVING sum(f.jobs) <> 0'),
    ('view', 'detent_ops_figures', 'CREATE VIEW detent_ops_figures AS
  SELECT CASE c.to_state WHEN ''succeeded'' THEN ''success'' ELSE c.to_state END AS status, sum(c.moves) AS runs,
         sum(CASE WHEN c.outcome <> '''' THEN c.held_us ELSE 0 END) * 1.0 / nullif(sum(CASE WHEN c.outcome <> '''' THEN c.moves ELSE 0 END), 0) / 1e6
           AS mean_seconds,
         max(CASE WHEN c.outcome <> '''' THEN c.held_us_max END) * 1.0 / 1e6 AS max_seconds
    FROM detent_transition_counts c
   WHERE c.task = ''ops.run'' AND c.to_state IN (''succeeded'', ''failed'', ''cancelled'')
     AND c.hour >= (CAST(strftime(''%s'', ''now'') AS INTEGER) / 3600 - 24) * 3600000000
   GROUP BY c.to_state'),
    ('view', 'detent_ops_runs', 'CREATE VIEW detent_ops_runs AS
  SELECT j.id AS job_id, e.project_id, e.id AS env_id, e.name AS env, r.git_sha, r.git_ref,
         CASE j.state WHEN ''pending'' THEN ''queued'' WHEN ''succeeded'' THEN ''success''
           WHEN ''running'' THEN CASE WHEN j.started_at IS NULL THEN ''claimed'' ELSE ''running'' END ELSE j.state END AS state,
         coalesce(x.worker, (SELECT l.worker FROM detent_lease l WHERE l.id = j.lease_id)) AS claimed_by,
         r.key, coalesce(j.metadata, ''{}'') AS metadata, r.finish_metadata, j.created_at AS queued_at,
         j.leased_at AS started_at, j.started_at AS begun_at, j.finished_at,
         max(j.created_at, coalesce(j.leased_at, 0), coalesce(j.started_at, 0), coalesce(j.finished_at, 0),
             coalesce(j.cancel_requested_at, 0), coalesce((
               SELECT v.at FROM detent_event v WHERE v.job_id = j.id ORDER BY v.seq DESC LIMIT 1), 0)) AS updated_at,
         x.outcome,
         CASE WHEN j.state = ''cancelled'' THEN coalesce(j.cancel_requested_by, (
           SELECT l.actor FROM detent_transition_log l WHERE l.job_id = j.id AND l.to_state = ''cancelled''
            ORDER BY l.n DESC LIMIT 1)) END AS cancelled_by,
         CASE WHEN j.state = ''cancelled'' THEN coalesce(j.cancel_reason, (
           SELECT l.reason FROM detent_transition_log l WHERE l.job_id = j.id AND l.to_state = ''cancelled''
            ORDER BY l.n DESC LIMIT 1)) END AS cancel_reason
    FROM detent_ops_run r
    JOIN detent_job j ON j.id = r.job_id
    JOIN detent_ops_environment e ON e.id = r.environment_id
    LEFT JOIN detent_execution x ON x.job_id = j.id AND x.attempt = j.attempt'),
    ('view', 'detent_pipeline_runs', 'CREATE VIEW detent_pipeline_runs AS
  SELECT r.id, r.tenant, r.name, r.payload, r.watermark, r.since, r.captured_at, r.is_full, r.is_forced, r.started_by,
         r.reason, r.retires, r.state, r.tolerated, r.partitions, r.parts_ended, r.parts_failed,
         (SELECT coalesce(sum(p.pages), 0) FROM detent_partition p WHERE p.run_id = r.id) AS pages,
         (SELECT coalesce(sum(p.records), 0) FROM detent_partition p WHERE p.run_id = r.id) AS records,
         (SELECT coalesce(sum(p.staged), 0) FROM detent_partition p WHERE p.run_id = r.id) AS staged,
         (SELECT coalesce(sum(o.records), 0) FROM detent_portion o
           WHERE o.run_id = r.id AND o.done_at IS NOT NULL) AS consolidated,
         r.retired, r.error, r.created_at, r.started_at, r.finished_at, r.moved_at
    FROM detent_pipeline_run r'),
    ('view', 'detent_target_transition', 'CREATE VIEW detent_target_transition AS
  SELECT g.run_id, g.n AS target_n, b.tenant, ''target'' AS entity, NULL AS job_id, g.run_id || ''/'' || g.n AS entity_id, NULL AS from_state, ''preview'' AS to_state,
         ''plan'' AS trigger, g.created_at AS at, ''worker'' AS actor, NULL AS reason, NULL AS metadata, b.correlation_id, 0 AS forced,
         0 AS attempt, 0 AS rank, 0 AS n
    FROM detent_target g JOIN detent_batch_run b ON b.id = g.run_id
  UNION ALL
  SELECT g.run_id, g.n, b.tenant, ''target'', NULL, g.run_id || ''/'' || g.n, ''preview'', ''queued'', ''queue'', g.queued_at, ''client'', NULL, NULL, b.correlation_id, 0, 0, 1, 0
    FROM detent_target g JOIN detent_batch_run b ON b.id = g.run_id
   WHERE g.queued_at IS NOT NULL
  UNION ALL
  SELECT g.run_id, g.n, b.tenant, ''target'', NULL, g.run_id || ''/'' || g.n, ''queued'', ''applying'', ''begin'', e.leased_at, e.worker, NULL, NULL, b.correlation_id, 0, e.attempt, 10, 0
    FROM detent_target g JOIN detent_batch_run b ON b.id = g.run_id JOIN detent_execution e ON e.job_id = g.apply_job_id
  UNION ALL
  SELECT g.run_id, g.n, b.tenant, ''target'', NULL, g.run_id || ''/'' || g.n, ''queued'', ''applying'', ''begin'', j.leased_at, coalesce((SELECT l.worker FROM detent_lease l WHERE l.id = j.lease_id), ''''), NULL, NULL, b.correlation_id, 0, j.attempt, 10, 0
    FROM detent_target g JOIN detent_batch_run b ON b.id = g.run_id JOIN detent_job j ON j.id = g.apply_job_id
   WHERE j.state = ''running''
  UNION ALL
  SELECT g.run_id, g.n, b.tenant, ''target'', NULL, g.run_id || ''/'' || g.n, ''applying'', CASE e.next_state WHEN ''succeeded'' THEN ''applied'' WHEN ''pending'' THEN ''queued'' ELSE ''failed'' END, CASE e.next_state WHEN ''succeeded'' THEN ''complete'' WHEN ''pending'' THEN ''back_off'' ELSE ''fail'' END, coalesce(e.done_at, e.aborted_at), CASE WHEN e.outcome = ''expired'' THEN ''reaper'' ELSE e.worker END, e.outcome, NULL, b.correlation_id, 0, e.attempt, 50, 0
    FROM detent_target g JOIN detent_batch_run b ON b.id = g.run_id JOIN detent_execution e ON e.job_id = g.apply_job_id
  UNION ALL
  SELECT g.run_id, g.n, b.tenant, ''target'', NULL, g.run_id || ''/'' || g.n, ''failed'', ''queued'', ''retry_failed'', l.at, l.actor, l.reason, NULL, b.correlation_id, l.forced, l.attempt, 90, l.n
    FROM detent_target g JOIN detent_batch_run b ON b.id = g.run_id JOIN detent_transition_log l ON l.job_id = g.apply_job_id AND l.trigger <> ''repair''
   WHERE l.from_state IN (''failed'', ''quarantined'', ''cancelled'') AND l.to_state IN (''pending'', ''succeeded'')
  UNION ALL
  SELECT g.run_id, g.n, b.tenant, ''target'', NULL, g.run_id || ''/'' || g.n, ''queued'', ''applying'', ''begin'', l.at, l.actor, l.reason, NULL, b.correlation_id, l.forced, l.attempt, 91, l.n
    FROM detent_target g JOIN detent_batch_run b ON b.id = g.run_id JOIN detent_transition_log l ON l.job_id = g.apply_job_id AND l.trigger <> ''repair''
   WHERE l.from_state = ''pending'' AND l.to_state IN (''cancelled'', ''quarantined'')
      OR l.from_state IN (''failed'', ''quarantined'', ''cancelled'') AND l.to_state = ''succeeded''
  UNION ALL
  SELECT g.run_id, g.n, b.tenant, ''target'', NULL, g.run_id || ''/'' || g.n, ''applying'', CASE l.to_state WHEN ''succeeded'' THEN ''applied'' ELSE ''failed'' END, CASE l.to_state WHEN ''succeeded'' THEN ''complete'' ELSE ''fail'' END, l.at, l.actor, l.reason, NULL, b.correlation_id, l.forced, l.attempt, 92, l.n
    FROM detent_target g JOIN detent_batch_run b ON b.id = g.run_id JOIN detent_transition_log l ON l.job_id = g.apply_job_id AND l.trigger <> ''repair''
   WHERE l.from_state = ''pending'' AND l.to_state IN (''cancelled'', ''quarantined'')
      OR l.from_state IN (''failed'', ''quarantined'', ''cancelled'') AND l.to_state = ''succeeded''
  UNION ALL
  SELECT g.run_id, g.n, b.tenant, ''target'', NULL, g.run_id || ''/'' || g.n, ''applied'', ''rolled_back'', ''roll_back'', g.rolled_back_at, b.rollback_requested_by, b.rollback_reason, NULL, b.correlation_id, 0, j.attempt, 95, 0
    FROM detent_target g JOIN detent_batch_run b ON b.id = g.run_id JOIN detent_job j ON j.id = g.apply_job_id
   WHERE g.rolled_back_at IS NOT NULL
  UNION ALL
  SELECT g.run_id, g.n, b.tenant, ''target'', NULL, g.run_id || ''/'' || g.n, l.from_state, l.to_state, l.trigger, l.at, l.actor, l.reason, NULL, b.correlation_id, l.forced, l.attempt, 96, l.n
    FROM detent_target g JOIN detent_batch_run b ON b.id = g.run_id JOIN detent_transition_log l ON l.job_id IS NULL AND l.entity = ''target'' AND l.entity_id = g.run_id || ''/'' || g.n'),
    ('view', 'detent_task_figures', 'CREATE VIEW detent_task_figures AS
  SELECT t.task, t.succeeded AS succeeded, t.failed AS failed, t.succeeded * 1.0 / nullif(t.succeeded + t.failed, 0) AS success_rate,
         t.retries AS retries, t.throttled AS throttled
    FROM (SELECT c.task, sum(CASE WHEN c.outcome = ''done'' THEN c.moves ELSE 0 END) AS succeeded,
                 sum(CASE WHEN c.outcome <> '''' AND c.to_state IN (''failed'', ''quarantined'') THEN c.moves ELSE 0 END) AS failed,
                 sum(CASE WHEN c.to_state = ''pending'' AND c.outcome NOT IN (''released'', ''snoozed'', ''throttled'') THEN c.moves ELSE 0 END)
                   AS retries,
                 sum(CASE WHEN c.outcome = ''throttled'' THEN c.moves ELSE 0 END) AS throttled
            FROM detent_transition_counts c
           WHERE c.hour >= (CAST(strftime(''%s'', ''now'') AS INTEGER) / 3600 - 24) * 3600000000
           GROUP BY c.task) t'),
    ('view', 'detent_transition', 'CREATE VIEW detent_transition AS
  WITH attempt AS NOT MATERIALIZED (
    SELECT e.job_id, e.attempt, e.worker, e.leased_at, e.started_at, e.committed_at,
           coalesce(e.done_at, e.aborted_at) AS ended_at, e.outcome, e.error, e.next_state,
           j.tenant, j.correlation_id
      FROM detent_execution e JOIN detent_job j ON j.id = e.job_id
    UNION ALL
    SELECT j.id, j.attempt, coalesce((SELECT l.worker FROM detent_lease l WHERE l.id = j.lease_id), ''''), j.leased_at, j.started_at, j.committed_at,
           NULL, NULL, NULL, NULL, j.tenant, j.correlation_id
      FROM detent_job j WHERE j.state = ''running''
  )
  SELECT j.tenant, ''job'' AS entity, j.id AS job_id, j.id AS entity_id, NULL AS from_state, ''pending'' AS to_state,
         ''enqueue'' AS trigger, j.created_at AS at, ''client'' AS actor, NULL AS reason, NULL AS metadata, j.correlation_id,
         0 AS forced, 0 AS attempt, 0 AS rank, 0 AS n
    FROM detent_job j
  UNION ALL
  SELECT tenant, ''job'', job_id, job_id, ''pending'', ''running'', ''claim'', leased_at, worker, NULL, NULL, correlation_id, 0, attempt, 10, 0
    FROM attempt
  UNION ALL
  SELECT tenant, ''execution'', job_id, job_id || ''/'' || attempt, NULL, ''leased'', ''lease'', leased_at, worker, NULL, NULL, correlation_id, 0, attempt, 11, 0
    FROM attempt
  UNION ALL
  SELECT tenant, ''execution'', job_id, job_id || ''/'' || attempt, ''leased'', ''in_progress'', ''start'', started_at, worker, NULL, NULL, correlation_id, 0, attempt, 20, 0
    FROM attempt WHERE started_at IS NOT NULL
  UNION ALL
  SELECT tenant, ''execution'', job_id, job_id || ''/'' || attempt, ''in_progress'', ''committed'', ''commit'', committed_at, worker, NULL, NULL, correlation_id, 0, attempt, 30, 0
    FROM attempt WHERE committed_at IS NOT NULL
  UNION ALL
  SELECT tenant, ''execution'', job_id, job_id || ''/'' || attempt,
         CASE WHEN outcome = ''done'' THEN ''committed'' WHEN started_at IS NOT NULL THEN ''in_progress'' ELSE ''leased'' END,
         CASE WHEN outcome = ''done'' THEN ''done'' ELSE ''aborted'' END,
         CASE WHEN outcome = ''done'' THEN ''finish'' ELSE ''abort'' END, ended_at, worker, outcome, NULL, correlation_id, 0, attempt, 40, 0
    FROM attempt WHERE ended_at IS NOT NULL
  UNION ALL
  SELECT tenant, ''job'', job_id, job_id, ''running'',
         CASE WHEN outcome IN (''error'', ''crashed'', ''timed_out'', ''unknown'') OR next_state IN (''failed'', ''quarantined'')
              THEN CASE WHEN next_state = ''cancelled'' THEN ''cancelled'' ELSE ''failed'' END ELSE next_state END,
         CASE WHEN outcome = ''done'' THEN ''finish'' WHEN next_state = ''cancelled'' THEN ''abort''
              WHEN outcome IN (''error'', ''crashed'', ''timed_out'', ''unknown'') OR next_state IN (''failed'', ''quarantined'') THEN ''fail''
              ELSE ''give_back'' END,
         ended_at, CASE WHEN outcome = ''expired'' THEN ''reaper'' ELSE worker END, outcome, NULL, correlation_id, 0, attempt, 50, 0
    FROM attempt WHERE ended_at IS NOT NULL
  UNION ALL
  SELECT tenant, ''job'', job_id, job_id, ''failed'', next_state,
         CASE WHEN next_state = ''quarantined'' THEN ''give_up'' ELSE ''back_off'' END,
         ended_at, CASE WHEN outcome = ''expired'' THEN ''reaper'' ELSE worker END, outcome, NULL, correlation_id, 0, attempt, 51, 0
    FROM attempt
   WHERE ended_at IS NOT NULL
     AND (next_state = ''quarantined'' OR (next_state = ''pending'' AND outcome IN (''error'', ''crashed'', ''timed_out'', ''unknown'')))
  UNION ALL
  SELECT tenant, entity, job_id, entity_id, from_state, to_state, trigger, at, actor, reason, metadata, correlation_id, forced,
         attempt, CASE WHEN entity = ''job'' AND from_state = ''running'' THEN 45 ELSE 90 END, n
    FROM detent_transition_log
  UNION ALL
  SELECT tenant, entity, job_id, entity_id, from_state, to_state, trigger, at, actor, reason, metadata, correlation_id, forced, attempt, rank, n FROM detent_target_transition'),
    ('view', 'detent_transition_counts', 'CREATE VIEW detent_transition_counts AS
  SELECT h.hour, h.task, h.from_state, h.to_state, h.outcome, h.bucket, h.moves, h.held_us, h.held_us_max, h.ran_us, h.ran_us_max,
         h.waited_us, h.waited_us_max
    FROM detent_transition_hour h
  UNION ALL
  SELECT x.at - x.at % 3600000000, x.task, x.from_state, x.to_state, x.outcome,
         CASE WHEN x.ran_us IS NULL THEN -1 WHEN x.ran_us < 10 THEN x.ran_us ELSE CAST(substr(''101012121215151518181818222222222227272727272733333333333339393939393939394747474747474747475656565656565656565656566868686868686868686868686868828282828282828282828282828282828282'',
           2 * CAST(substr(x.ran_us, 1, 2) AS INTEGER) - 19, 2) || substr(''0000000000000000'', 1, length(x.ran_us) - 2) AS INTEGER) END, 1,
         x.held_us, x.held_us, coalesce(x.ran_us, 0), coalesce(x.ran_us, 0), x.waited_us, x.waited_us
    FROM (SELECT d.at, d.task, d.from_state, d.to_state, d.outcome, d.held_us, d.ran_us, d.waited_us
            FROM detent_transition_delta d
          UNION ALL
          SELECT j.finished_at, j.task, ''running'', ''succeeded'', ''done'',
                 coalesce(min(max(j.finished_at - j.leased_at, 0), 8640000000000), 0), min(max(j.finished_at - j.started_at, 0), 8640000000000),
                 coalesce(min(max(j.leased_at - max(j.created_at, j.due_at), 0), 8640000000000), 0)
            FROM detent_succeeded_batch b CROSS JOIN json_each(b.job_ids) u
            CROSS JOIN detent_job j ON j.id = u.value AND j.state = ''succeeded'' AND j.finished_at IS NOT NULL) x'),
    ('view', 'detent_transition_figures', 'CREATE VIEW detent_transition_figures AS
  SELECT m.task, m.from_state, m.to_state, sum(m.moves) AS moves, sum(m.held_us) * 1.0 / sum(m.moves) / 1e6 AS mean_seconds,
         max(m.held_us_max) * 1.0 / 1e6 AS max_seconds
    FROM (SELECT c.task, c.from_state, c.to_state, c.moves, c.held_us, c.held_us_max FROM detent_transition_counts c
           WHERE c.hour >= (CAST(strftime(''%s'', ''now'') AS INTEGER) / 3600 - 24) * 3600000000
          UNION ALL
          SELECT c.task, ''pending'', ''running'', c.moves, c.waited_us, c.waited_us_max FROM detent_transition_counts c
           WHERE c.outcome <> '''' AND c.hour >= (CAST(strftime(''%s'', ''now'') AS INTEGER) / 3600 - 24) * 3600000000) m
   GROUP BY m.task, m.from_state, m.to_state')
  ),
  wanted_trigger (name) AS (VALUES
    ('detent_alert_event_raises'),
    ('detent_alert_event_resolves'),
    ('detent_batch_run_begins'),
    ('detent_batch_run_frozen'),
    ('detent_batch_run_goes'),
    ('detent_batch_run_guard'),
    ('detent_batch_run_mismatches'),
    ('detent_batch_run_settle'),
    ('detent_event_begins'),
    ('detent_event_goes'),
    ('detent_event_keep'),
    ('detent_execution_begins'),
    ('detent_execution_goes'),
    ('detent_execution_keep'),
    ('detent_horizon_begins'),
    ('detent_horizon_goes'),
    ('detent_horizon_keep'),
    ('detent_identity_begins'),
    ('detent_identity_goes'),
    ('detent_identity_keep'),
    ('detent_job_begins'),
    ('detent_job_counted'),
    ('detent_job_effect'),
    ('detent_job_frozen'),
    ('detent_job_goes'),
    ('detent_job_guard'),
    ('detent_job_moves_run'),
    ('detent_job_moves_target'),
    ('detent_job_ops_run'),
    ('detent_job_result'),
    ('detent_migration_begins'),
    ('detent_migration_goes'),
    ('detent_migration_keep'),
    ('detent_ops_environment_begins'),
    ('detent_ops_environment_goes'),
    ('detent_ops_environment_keep'),
    ('detent_ops_run_begins'),
    ('detent_ops_run_goes'),
    ('detent_ops_run_keep'),
    ('detent_partition_begins'),
    ('detent_partition_frozen'),
    ('detent_partition_guard'),
    ('detent_pipeline_enqueues'),
    ('detent_pipeline_fans_in'),
    ('detent_pipeline_follows_job'),
    ('detent_pipeline_follows_partition'),
    ('detent_pipeline_run_begins'),
    ('detent_pipeline_run_frozen'),
    ('detent_pipeline_run_goes'),
    ('detent_pipeline_run_guard'),
    ('detent_target_begins'),
    ('detent_target_counts'),
    ('detent_target_counts_new'),
    ('detent_target_counts_previewed'),
    ('detent_target_frozen'),
    ('detent_target_goes'),
    ('detent_target_guard'),
    ('detent_transition_log_begins'),
    ('detent_transition_log_goes'),
    ('detent_transition_log_keep'),
    ('detent_watermark_begins'),
    ('detent_watermark_goes'),
    ('detent_watermark_guard')
  )
SELECT w.type AS entity, w.name AS entity_id,
       CASE WHEN s.name IS NULL THEN 'it is missing' ELSE 'its definition was changed' END AS detail
  FROM wanted w LEFT JOIN sqlite_master s ON s.type = w.type AND s.name = w.name
 WHERE s.name IS NULL OR s.sql <> w.text
UNION ALL
SELECT 'strange_trigger', substr(s.tbl_name, 8) || '.' || s.name, 'Detent did not install it'
  FROM sqlite_master s
 WHERE s.type = 'trigger' AND s.tbl_name LIKE 'detent!_%' ESCAPE '!'
   AND s.name NOT IN (SELECT w.name FROM wanted_trigger w)
 ORDER BY 1, 2;
