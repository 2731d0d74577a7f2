-- C1, J3, R3: every CHECK, primary key and unique index is there, valid and enforced.
-- Generated from the migrations by `python -m detent.store.invariants.generate`; a test keeps it equal.
WITH wanted (name, relation, kind) AS (VALUES
    ('migration_pkey', 'migration', 'p'),
    ('job_pkey', 'job', 'p'),
    ('job_state_known', 'job', 'c'),
    ('job_running_has_open_attempt', 'job', 'c'),
    ('job_attempts_in_order', 'job', 'c'),
    ('job_attempts_max_positive', 'job', 'c'),
    ('job_succeeded_is_committed', 'job', 'c'),
    ('job_finished_has_time', 'job', 'c'),
    ('job_running_has_lease', 'job', 'c'),
    ('job_commit_is_of_a_running_or_succeeded_job', 'job', 'c'),
    ('job_key_pkey', 'job_key', 'p'),
    ('queue_pkey', 'queue', 'p'),
    ('lane_pkey', 'lane', 'p'),
    ('lane_of_one_rank', 'lane', 'u'),
    ('ready_pkey', 'ready', 'p'),
    ('waiting_pkey', 'waiting', 'p'),
    ('lease_pkey', 'lease', 'p'),
    ('execution_pkey', 'execution', 'p'),
    ('execution_outcome_known', 'execution', 'c'),
    ('execution_next_state_known', 'execution', 'c'),
    ('execution_ended_one_way', 'execution', 'c'),
    ('execution_done_is_committed', 'execution', 'c'),
    ('execution_done_succeeds', 'execution', 'c'),
    ('execution_attempt_positive', 'execution', 'c'),
    ('transition_log_pkey', 'transition_log', 'p'),
    ('transition_log_has_actor', 'transition_log', 'c'),
    ('transition_log_force_has_reason', 'transition_log', 'c'),
    ('event_pkey', 'event', 'p'),
    ('event_seq_positive', 'event', 'c'),
    ('dead_pkey', 'dead', 'p'),
    ('horizon_pkey', 'horizon', 'p'),
    ('worker_pkey', 'worker', 'p'),
    ('service_pkey', 'service', 'p'),
    ('schedule_pkey', 'schedule', 'p'),
    ('schedule_catch_up_known', 'schedule', 'c'),
    ('schedule_fire_pkey', 'schedule_fire', 'p'),
    ('operation_pkey', 'operation', 'p'),
    ('operation_action_known', 'operation', 'c'),
    ('operation_state_known', 'operation', 'c'),
    ('operation_finished_has_time', 'operation', 'c'),
    ('recovery_pkey', 'recovery', 'p'),
    ('recovery_of_something', 'recovery', 'c'),
    ('rate_limit_pkey', 'rate_limit', 'p'),
    ('rate_limit_is_possible', 'rate_limit', 'c'),
    ('limit_member_pkey', 'limit_member', 'p'),
    ('limit_member_kind_known', 'limit_member', 'c'),
    ('limit_slot_pkey', 'limit_slot', 'p'),
    ('untold_pkey', 'untold', 'p'),
    ('alert_pkey', 'alert', 'p'),
    ('alert_state_known', 'alert', 'c'),
    ('alert_severity_known', 'alert', 'c'),
    ('alert_resolved_has_time', 'alert', 'c'),
    ('alert_acknowledged_by_somebody', 'alert', 'c'),
    ('alert_counts_from_one', 'alert', 'c'),
    ('alert_policy_pkey', 'alert_policy', 'p'),
    ('alert_policy_severity_known', 'alert_policy', 'c'),
    ('alert_policy_each_known', 'alert_policy', 'c'),
    ('alert_policy_is_possible', 'alert_policy', 'c'),
    ('alert_policy_measured_has_threshold', 'alert_policy', 'c'),
    ('alert_notice_pkey', 'alert_notice', 'p'),
    ('alert_notice_kind_known', 'alert_notice', 'c'),
    ('alert_delivery_pkey', 'alert_delivery', 'p'),
    ('alert_delivery_state_known', 'alert_delivery', 'c'),
    ('alert_delivery_sent_has_time', 'alert_delivery', 'c'),
    ('alert_tally_pkey', 'alert_tally', 'p'),
    ('alert_look_pkey', 'alert_look', 'p'),
    ('job_effect_told_by_known', 'job', 'c'),
    ('execution_one_commit', 'execution', 'i'),
    ('event_one_per_key', 'event', 'i'),
    ('alert_notice_once', 'alert_notice', 'i')
  )
SELECT 'constraint' AS entity, w.name AS entity_id,
       CASE WHEN c.oid IS NULL THEN 'it is missing on ' ELSE 'it is not enforced on ' END || w.relation AS detail
  FROM wanted w
  LEFT JOIN pg_catalog.pg_constraint c
    ON c.conname = w.name AND c.conrelid = to_regclass('detent.' || w.relation) AND c.contype = w.kind::"char"
 WHERE w.kind <> 'i' AND (c.oid IS NULL OR NOT c.convalidated OR pg_get_constraintdef(c.oid) LIKE '%NOT ENFORCED%')
UNION ALL
SELECT 'index', w.name,
       CASE WHEN x.indexrelid IS NULL THEN 'it is missing on ' ELSE 'it is not enforced on ' END || w.relation
  FROM wanted w
  LEFT JOIN pg_catalog.pg_index x ON x.indexrelid = to_regclass('detent.' || w.name)
 WHERE w.kind = 'i' AND (x.indexrelid IS NULL OR NOT (x.indisunique AND x.indisvalid AND x.indisready)
                         OR x.indrelid <> to_regclass('detent.' || w.relation))
 ORDER BY 1, 2;
