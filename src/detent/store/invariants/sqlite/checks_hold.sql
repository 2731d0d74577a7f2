-- G4, R3: every row satisfies every CHECK of its table. A row that does not was written past the CHECK.
-- Generated from the migrations by `python -m detent.store.invariants.generate`; a test keeps it equal.
SELECT 'alert' AS entity, CAST(policy AS TEXT) || '/' || CAST(scope AS TEXT) AS entity_id,
       'it breaks ' || CASE WHEN NOT (state = 'firing' OR state = 'resolved') THEN 'alert_state_known' WHEN NOT (severity = 'info' OR severity = 'warning' OR severity = 'critical') THEN 'alert_severity_known' WHEN NOT ((state = 'resolved') = (resolved_at IS NOT NULL)) THEN 'alert_resolved_has_time' WHEN NOT ((acknowledged_at IS NULL) = (acknowledged_by IS NULL)) THEN 'alert_acknowledged_by_somebody' WHEN NOT (episode >= 1 AND raised >= 1) THEN 'alert_counts_from_one' END AS detail
  FROM detent_alert
 WHERE NOT ((state = 'firing' OR state = 'resolved') AND (severity = 'info' OR severity = 'warning' OR severity = 'critical') AND ((state = 'resolved') = (resolved_at IS NOT NULL)) AND ((acknowledged_at IS NULL) = (acknowledged_by IS NULL)) AND (episode >= 1 AND raised >= 1))
UNION ALL
SELECT 'alert_delivery' AS entity, CAST(notice_n AS TEXT) || '/' || CAST(sink AS TEXT) AS entity_id,
       'it breaks ' || CASE WHEN NOT (state = 'pending' OR state = 'sent' OR state = 'summarised' OR state = 'failed') THEN 'alert_delivery_state_known' WHEN NOT ((state = 'pending') = (sent_at IS NULL)) THEN 'alert_delivery_sent_has_time' END AS detail
  FROM detent_alert_delivery
 WHERE NOT ((state = 'pending' OR state = 'sent' OR state = 'summarised' OR state = 'failed') AND ((state = 'pending') = (sent_at IS NULL)))
UNION ALL
SELECT 'alert_notice' AS entity, CAST(n AS TEXT) AS entity_id,
       'it breaks ' || CASE WHEN NOT (kind = 'firing' OR kind = 'still' OR kind = 'resolved') THEN 'alert_notice_kind_known' END AS detail
  FROM detent_alert_notice
 WHERE NOT ((kind = 'firing' OR kind = 'still' OR kind = 'resolved'))
UNION ALL
SELECT 'alert_policy' AS entity, CAST(name AS TEXT) AS entity_id,
       'it breaks ' || CASE WHEN NOT (severity = 'info' OR severity = 'warning' OR severity = 'critical') THEN 'alert_policy_severity_known' WHEN NOT (each = 'whole' OR each = 'queue' OR each = 'task' OR each = 'limit') THEN 'alert_policy_each_known' WHEN NOT (window_seconds >= 0 AND calm_seconds >= 0 AND count_min >= 0) THEN 'alert_policy_is_possible' WHEN NOT ((measure = 'event') = (threshold IS NULL)) THEN 'alert_policy_measured_has_threshold' END AS detail
  FROM detent_alert_policy
 WHERE NOT ((severity = 'info' OR severity = 'warning' OR severity = 'critical') AND (each = 'whole' OR each = 'queue' OR each = 'task' OR each = 'limit') AND (window_seconds >= 0 AND calm_seconds >= 0 AND count_min >= 0) AND ((measure = 'event') = (threshold IS NULL)))
UNION ALL
SELECT 'batch_action' AS entity, CAST(id AS TEXT) AS entity_id,
       'it breaks ' || CASE WHEN NOT (action IN ('apply', 'retry_failed', 'roll_back')) THEN 'batch_action_known' WHEN NOT (cursor >= 0 AND moved >= 0) THEN 'batch_action_goes_on' END AS detail
  FROM detent_batch_action
 WHERE NOT ((action IN ('apply', 'retry_failed', 'roll_back')) AND (cursor >= 0 AND moved >= 0))
UNION ALL
SELECT 'batch_run' AS entity, CAST(id AS TEXT) AS entity_id,
       'it breaks ' || CASE WHEN NOT (state IN ('preview', 'queued', 'applying', 'applied', 'partial', 'failed', 'rolled_back')) THEN 'batch_run_state_known' WHEN NOT (unchanged >= 0 AND unchanged <= previewed AND preview_failed >= 0 AND previewed + preview_failed <= total AND queued >= 0 AND applying >= 0 AND applied >= 0 AND failed >= 0 AND rolled_back >= 0 AND queued + applying + applied + failed + rolled_back <= previewed AND reverting >= 0 AND revert_failed >= 0 AND reverting + revert_failed <= applied AND outstanding BETWEEN 0 AND 1 AND stuck >= 0 AND mismatches >= 0) THEN 'batch_run_counts_possible' WHEN NOT (queued_at >= created_at AND started_at >= queued_at AND finished_at >= started_at AND rolled_back_at >= rollback_requested_at) THEN 'batch_run_times_in_order' WHEN NOT (state <> 'preview' OR (queued_at IS NULL AND queued + applying + applied + failed + rolled_back + outstanding = 0)) THEN 'batch_run_preview_is_untouched' WHEN NOT (state = 'preview' OR (queued_at IS NOT NULL AND previewed_at IS NOT NULL)) THEN 'batch_run_queued_has_time' WHEN NOT ((state IN ('preview', 'queued')) = (started_at IS NULL)) THEN 'batch_run_started_has_time' WHEN NOT ((state IN ('preview', 'queued', 'applying')) = (finished_at IS NULL)) THEN 'batch_run_rest_has_time' WHEN NOT (state <> 'applied' OR queued + applying + failed = 0) THEN 'batch_run_applied_is_whole' WHEN NOT (rollback_requested_at IS NULL OR (queued + applying = 0 AND state IN ('applied', 'partial', 'rolled_back'))) THEN 'batch_run_rolls_back_alone' WHEN NOT ((state = 'rolled_back') = (rolled_back_at IS NOT NULL) AND (state <> 'rolled_back' OR (rollback_requested_at IS NOT NULL AND applied + outstanding = 0))) THEN 'batch_run_rolled_back_is_whole' WHEN NOT ((rollback_requested_at IS NULL) = (rollback_requested_by IS NULL)) THEN 'batch_run_rollback_has_actor' WHEN NOT (tolerate_count >= 0 AND tolerate_share BETWEEN 0 AND 1) THEN 'batch_run_tolerates_something' END AS detail
  FROM detent_batch_run
 WHERE NOT ((state IN ('preview', 'queued', 'applying', 'applied', 'partial', 'failed', 'rolled_back')) AND (unchanged >= 0 AND unchanged <= previewed AND preview_failed >= 0 AND previewed + preview_failed <= total AND queued >= 0 AND applying >= 0 AND applied >= 0 AND failed >= 0 AND rolled_back >= 0 AND queued + applying + applied + failed + rolled_back <= previewed AND reverting >= 0 AND revert_failed >= 0 AND reverting + revert_failed <= applied AND outstanding BETWEEN 0 AND 1 AND stuck >= 0 AND mismatches >= 0) AND (queued_at >= created_at AND started_at >= queued_at AND finished_at >= started_at AND rolled_back_at >= rollback_requested_at) AND (state <> 'preview' OR (queued_at IS NULL AND queued + applying + applied + failed + rolled_back + outstanding = 0)) AND (state = 'preview' OR (queued_at IS NOT NULL AND previewed_at IS NOT NULL)) AND ((state IN ('preview', 'queued')) = (started_at IS NULL)) AND ((state IN ('preview', 'queued', 'applying')) = (finished_at IS NULL)) AND (state <> 'applied' OR queued + applying + failed = 0) AND (rollback_requested_at IS NULL OR (queued + applying = 0 AND state IN ('applied', 'partial', 'rolled_back'))) AND ((state = 'rolled_back') = (rolled_back_at IS NOT NULL) AND (state <> 'rolled_back' OR (rollback_requested_at IS NOT NULL AND applied + outstanding = 0))) AND ((rollback_requested_at IS NULL) = (rollback_requested_by IS NULL)) AND (tolerate_count >= 0 AND tolerate_share BETWEEN 0 AND 1))
UNION ALL
SELECT 'declaration' AS entity, CAST(kind AS TEXT) || '/' || CAST(name AS TEXT) || '/' || CAST(n AS TEXT) AS entity_id,
       'it breaks ' || CASE WHEN NOT (kind IN ('schedule', 'limit')) THEN 'declaration_kind_known' WHEN NOT (n > 0) THEN 'declaration_is_numbered' END AS detail
  FROM detent_declaration
 WHERE NOT ((kind IN ('schedule', 'limit')) AND (n > 0))
UNION ALL
SELECT 'event' AS entity, CAST(job_id AS TEXT) || '/' || CAST(seq AS TEXT) AS entity_id,
       'it breaks ' || CASE WHEN NOT (seq >= 1) THEN 'event_seq_positive' END AS detail
  FROM detent_event
 WHERE NOT ((seq >= 1))
UNION ALL
SELECT 'execution' AS entity, CAST(job_id AS TEXT) || '/' || CAST(attempt AS TEXT) AS entity_id,
       'it breaks ' || CASE WHEN NOT (outcome = 'done' OR outcome = 'error' OR outcome = 'expired' OR outcome = 'crashed' OR outcome = 'cancelled' OR outcome = 'released' OR outcome = 'snoozed' OR outcome = 'throttled' OR outcome = 'timed_out' OR outcome = 'unknown') THEN 'execution_outcome_known' WHEN NOT (next_state = 'pending' OR next_state = 'succeeded' OR next_state = 'failed' OR next_state = 'quarantined' OR next_state = 'cancelled') THEN 'execution_next_state_known' WHEN NOT ((outcome = 'done') = (done_at IS NOT NULL) AND (outcome = 'done') = (aborted_at IS NULL)) THEN 'execution_ended_one_way' WHEN NOT ((outcome = 'done') = (committed_at IS NOT NULL)) THEN 'execution_done_is_committed' WHEN NOT ((outcome = 'done') = (next_state = 'succeeded')) THEN 'execution_done_succeeds' WHEN NOT (attempt >= 1) THEN 'execution_attempt_positive' END AS detail
  FROM detent_execution
 WHERE NOT ((outcome = 'done' OR outcome = 'error' OR outcome = 'expired' OR outcome = 'crashed' OR outcome = 'cancelled' OR outcome = 'released' OR outcome = 'snoozed' OR outcome = 'throttled' OR outcome = 'timed_out' OR outcome = 'unknown') AND (next_state = 'pending' OR next_state = 'succeeded' OR next_state = 'failed' OR next_state = 'quarantined' OR next_state = 'cancelled') AND ((outcome = 'done') = (done_at IS NOT NULL) AND (outcome = 'done') = (aborted_at IS NULL)) AND ((outcome = 'done') = (committed_at IS NOT NULL)) AND ((outcome = 'done') = (next_state = 'succeeded')) AND (attempt >= 1))
UNION ALL
SELECT 'identity' AS entity, CAST(n AS TEXT) AS entity_id,
       'it breaks ' || CASE WHEN NOT (length(identity) = 32) THEN 'identity_is_long' END AS detail
  FROM detent_identity
 WHERE NOT ((length(identity) = 32))
UNION ALL
SELECT 'job' AS entity, CAST(id AS TEXT) AS entity_id,
       'it breaks ' || CASE WHEN NOT (effect_told_by = 'probe' OR effect_told_by = 'marker') THEN 'job_effect_told_by_known' WHEN NOT (result_dropped_at IS NULL OR (result IS NULL AND state = 'succeeded')) THEN 'job_dropped_result_is_gone' WHEN NOT (cost >= 1) THEN 'job_cost_is_possible' WHEN NOT (state = 'pending' OR state = 'running' OR state = 'succeeded' OR state = 'failed' OR state = 'quarantined' OR state = 'cancelled') THEN 'job_state_known' WHEN NOT ((state = 'running') = (ended < attempt)) THEN 'job_running_has_open_attempt' WHEN NOT (ended BETWEEN attempt - 1 AND attempt AND spared BETWEEN 0 AND attempt AND attempt >= 0) THEN 'job_attempts_in_order' WHEN NOT (priority BETWEEN -32768 AND 32767) THEN 'job_priority_is_small' WHEN NOT (dead_letter IN (0, 1) AND idempotent IN (0, 1)) THEN 'job_booleans' WHEN NOT (attempts_max >= 1) THEN 'job_attempts_max_positive' WHEN NOT (state <> 'succeeded' OR committed_at IS NOT NULL) THEN 'job_succeeded_is_committed' WHEN NOT ((state IN ('pending', 'running')) = (finished_at IS NULL)) THEN 'job_finished_has_time' WHEN NOT (state <> 'running' OR (lease_id IS NOT NULL AND leased_at IS NOT NULL)) THEN 'job_running_has_lease' WHEN NOT (committed_at IS NULL OR state IN ('running', 'succeeded')) THEN 'job_commit_is_of_a_running_or_succeeded_job' END AS detail
  FROM detent_job
 WHERE NOT ((effect_told_by = 'probe' OR effect_told_by = 'marker') AND (result_dropped_at IS NULL OR (result IS NULL AND state = 'succeeded')) AND (cost >= 1) AND (state = 'pending' OR state = 'running' OR state = 'succeeded' OR state = 'failed' OR state = 'quarantined' OR state = 'cancelled') AND ((state = 'running') = (ended < attempt)) AND (ended BETWEEN attempt - 1 AND attempt AND spared BETWEEN 0 AND attempt AND attempt >= 0) AND (priority BETWEEN -32768 AND 32767) AND (dead_letter IN (0, 1) AND idempotent IN (0, 1)) AND (attempts_max >= 1) AND (state <> 'succeeded' OR committed_at IS NOT NULL) AND ((state IN ('pending', 'running')) = (finished_at IS NULL)) AND (state <> 'running' OR (lease_id IS NOT NULL AND leased_at IS NOT NULL)) AND (committed_at IS NULL OR state IN ('running', 'succeeded')))
UNION ALL
SELECT 'job_span' AS entity, CAST(created_at AS TEXT) || '/' || CAST(block AS TEXT) || '/' || CAST(first_id AS TEXT) AS entity_id,
       'it breaks ' || CASE WHEN NOT (first_id <= last_id AND first_id >> 10 = block AND last_id >> 10 = block) THEN 'job_span_is_within_its_block' END AS detail
  FROM detent_job_span
 WHERE NOT ((first_id <= last_id AND first_id >> 10 = block AND last_id >> 10 = block))
UNION ALL
SELECT 'limit_member' AS entity, CAST(kind AS TEXT) || '/' || CAST(name AS TEXT) AS entity_id,
       'it breaks ' || CASE WHEN NOT (kind IN ('task', 'queue')) THEN 'limit_member_kind_known' END AS detail
  FROM detent_limit_member
 WHERE NOT ((kind IN ('task', 'queue')))
UNION ALL
SELECT 'limit_slot' AS entity, CAST(limit_key AS TEXT) || '/' || CAST(job_id AS TEXT) AS entity_id,
       'it breaks ' || CASE WHEN NOT (cost >= 0) THEN 'limit_slot_cost_is_possible' END AS detail
  FROM detent_limit_slot
 WHERE NOT ((cost >= 0))
UNION ALL
SELECT 'operation' AS entity, CAST(id AS TEXT) AS entity_id,
       'it breaks ' || CASE WHEN NOT (action IN ('retry', 'cancel', 'discard', 'move')) THEN 'operation_action_known' WHEN NOT (state IN ('running', 'done', 'cancelled')) THEN 'operation_state_known' WHEN NOT ((state = 'running') = (finished_at IS NULL)) THEN 'operation_finished_has_time' END AS detail
  FROM detent_operation
 WHERE NOT ((action IN ('retry', 'cancel', 'discard', 'move')) AND (state IN ('running', 'done', 'cancelled')) AND ((state = 'running') = (finished_at IS NULL)))
UNION ALL
SELECT 'ops_environment' AS entity, CAST(id AS TEXT) AS entity_id,
       'it breaks ' || CASE WHEN NOT (project_id <> '' AND name <> '') THEN 'ops_environment_is_named' END AS detail
  FROM detent_ops_environment
 WHERE NOT ((project_id <> '' AND name <> ''))
UNION ALL
SELECT 'partition' AS entity, CAST(run_id AS TEXT) || '/' || CAST(n AS TEXT) AS entity_id,
       'it breaks ' || CASE WHEN NOT (state IN ('pending', 'in_progress', 'fetching_pages', 'completed', 'failed')) THEN 'partition_state_known' WHEN NOT (state <> 'completed' OR last_page) THEN 'partition_completed_has_its_last_page' WHEN NOT (pages = 0 OR state IN ('fetching_pages', 'completed', 'failed')) THEN 'partition_pages_are_fetched' WHEN NOT ((state IN ('completed', 'failed')) = (ended_at IS NOT NULL)) THEN 'partition_ended_has_time' WHEN NOT (staged BETWEEN 0 AND records) THEN 'partition_staged_is_of_its_records' END AS detail
  FROM detent_partition
 WHERE NOT ((state IN ('pending', 'in_progress', 'fetching_pages', 'completed', 'failed')) AND (state <> 'completed' OR last_page) AND (pages = 0 OR state IN ('fetching_pages', 'completed', 'failed')) AND ((state IN ('completed', 'failed')) = (ended_at IS NOT NULL)) AND (staged BETWEEN 0 AND records))
UNION ALL
SELECT 'pipeline_run' AS entity, CAST(id AS TEXT) AS entity_id,
       'it breaks ' || CASE WHEN NOT (state IN ('created', 'workers_running', 'consolidation_skipped', 'consolidation_triggered', 'consolidating', 'completed', 'failed')) THEN 'pipeline_run_state_known' WHEN NOT (parts_failed BETWEEN 0 AND parts_ended AND parts_ended <= partitions) THEN 'pipeline_run_counts_fit' WHEN NOT ((state IN ('completed', 'failed')) = (finished_at IS NOT NULL)) THEN 'pipeline_run_finished_has_time' WHEN NOT (state IN ('created', 'workers_running', 'failed') OR parts_ended = partitions) THEN 'pipeline_run_consolidates_when_all_ended' WHEN NOT (NOT is_forced OR (reason IS NOT NULL AND reason <> '')) THEN 'pipeline_run_force_has_reason' WHEN NOT (replicas BETWEEN 1 AND 16 AND portion_size >= 1) THEN 'pipeline_run_bounds' END AS detail
  FROM detent_pipeline_run
 WHERE NOT ((state IN ('created', 'workers_running', 'consolidation_skipped', 'consolidation_triggered', 'consolidating', 'completed', 'failed')) AND (parts_failed BETWEEN 0 AND parts_ended AND parts_ended <= partitions) AND ((state IN ('completed', 'failed')) = (finished_at IS NOT NULL)) AND (state IN ('created', 'workers_running', 'failed') OR parts_ended = partitions) AND (NOT is_forced OR (reason IS NOT NULL AND reason <> '')) AND (replicas BETWEEN 1 AND 16 AND portion_size >= 1))
UNION ALL
SELECT 'rate_limit' AS entity, CAST(key AS TEXT) AS entity_id,
       'it breaks ' || CASE WHEN NOT (rate > 0 AND per > 0 AND burst >= 1 AND concurrency_max >= 1) THEN 'rate_limit_is_possible' END AS detail
  FROM detent_rate_limit
 WHERE NOT ((rate > 0 AND per > 0 AND burst >= 1 AND concurrency_max >= 1))
UNION ALL
SELECT 'recovery' AS entity, CAST(queue AS TEXT) AS entity_id,
       'it breaks ' || CASE WHEN NOT (stale_after IS NOT NULL OR stalled_after IS NOT NULL) THEN 'recovery_of_something' END AS detail
  FROM detent_recovery
 WHERE NOT ((stale_after IS NOT NULL OR stalled_after IS NOT NULL))
UNION ALL
SELECT 'schedule' AS entity, CAST(name AS TEXT) AS entity_id,
       'it breaks ' || CASE WHEN NOT (catch_up IN ('latest', 'all', 'skip')) THEN 'schedule_catch_up_known' END AS detail
  FROM detent_schedule
 WHERE NOT ((catch_up IN ('latest', 'all', 'skip')))
UNION ALL
SELECT 'target' AS entity, CAST(run_id AS TEXT) || '/' || CAST(n AS TEXT) AS entity_id,
       'it breaks ' || CASE WHEN NOT (state = 'preview' OR state = 'queued' OR state = 'applying' OR state = 'applied' OR state = 'failed' OR state = 'rolled_back') THEN 'target_state_known' WHEN NOT (n >= 1) THEN 'target_n_positive' WHEN NOT ((previewed_at IS NULL) = (changed IS NULL AND preview_error IS NULL) AND (changed IS NULL OR preview_error IS NULL)) THEN 'target_preview_is_whole' WHEN NOT ((state = 'preview') = (apply_job_id IS NULL) AND (apply_job_id IS NULL) = (queued_at IS NULL)) THEN 'target_applies_by_a_job' WHEN NOT (state = 'preview' OR changed IS NOT NULL) THEN 'target_applies_what_was_previewed' WHEN NOT ((state = 'applied' OR state = 'rolled_back') = (applied_at IS NOT NULL)) THEN 'target_applied_has_time' WHEN NOT ((state = 'rolled_back') = (rolled_back_at IS NOT NULL) AND (state = 'rolled_back') = coalesce(revert_state = 'done', false)) THEN 'target_rolled_back_has_time' WHEN NOT ((revert_job_id IS NULL) = (revert_state IS NULL) AND (revert_job_id IS NULL OR state = 'applied' OR state = 'rolled_back') AND (revert_state = 'reverting' OR revert_state = 'failed' OR revert_state = 'done')) THEN 'target_reverts_by_a_job' END AS detail
  FROM detent_target
 WHERE NOT ((state = 'preview' OR state = 'queued' OR state = 'applying' OR state = 'applied' OR state = 'failed' OR state = 'rolled_back') AND (n >= 1) AND ((previewed_at IS NULL) = (changed IS NULL AND preview_error IS NULL) AND (changed IS NULL OR preview_error IS NULL)) AND ((state = 'preview') = (apply_job_id IS NULL) AND (apply_job_id IS NULL) = (queued_at IS NULL)) AND (state = 'preview' OR changed IS NOT NULL) AND ((state = 'applied' OR state = 'rolled_back') = (applied_at IS NOT NULL)) AND ((state = 'rolled_back') = (rolled_back_at IS NOT NULL) AND (state = 'rolled_back') = coalesce(revert_state = 'done', false)) AND ((revert_job_id IS NULL) = (revert_state IS NULL) AND (revert_job_id IS NULL OR state = 'applied' OR state = 'rolled_back') AND (revert_state = 'reverting' OR revert_state = 'failed' OR revert_state = 'done')))
UNION ALL
SELECT 'task_times' AS entity, CAST(task AS TEXT) AS entity_id,
       'it breaks ' || CASE WHEN NOT (stale_after > 0 OR stalled_after > 0 OR result_ttl > 0) THEN 'task_times_say_something' END AS detail
  FROM detent_task_times
 WHERE NOT ((stale_after > 0 OR stalled_after > 0 OR result_ttl > 0))
UNION ALL
SELECT 'transition_hour' AS entity, CAST(hour AS TEXT) || '/' || CAST(task AS TEXT) || '/' || CAST(from_state AS TEXT) || '/' || CAST(to_state AS TEXT) || '/' || CAST(outcome AS TEXT) || '/' || CAST(bucket AS TEXT) AS entity_id,
       'it breaks ' || CASE WHEN NOT (moves > 0 AND held_us_max >= 0 AND held_us >= held_us_max AND ran_us_max >= 0 AND ran_us >= ran_us_max AND waited_us_max >= 0 AND waited_us >= waited_us_max) THEN 'transition_hour_adds_up' END AS detail
  FROM detent_transition_hour
 WHERE NOT ((moves > 0 AND held_us_max >= 0 AND held_us >= held_us_max AND ran_us_max >= 0 AND ran_us >= ran_us_max AND waited_us_max >= 0 AND waited_us >= waited_us_max))
UNION ALL
SELECT 'transition_log' AS entity, CAST(n AS TEXT) AS entity_id,
       'it breaks ' || CASE WHEN NOT (actor <> '') THEN 'transition_log_has_actor' WHEN NOT (NOT forced OR (reason IS NOT NULL AND reason <> '')) THEN 'transition_log_force_has_reason' END AS detail
  FROM detent_transition_log
 WHERE NOT ((actor <> '') AND (NOT forced OR (reason IS NOT NULL AND reason <> '')))
UNION ALL
SELECT 'watch' AS entity, CAST(one AS TEXT) AS entity_id,
       'it breaks ' || CASE WHEN NOT (one) THEN 'watch_is_one_row' END AS detail
  FROM detent_watch
 WHERE NOT ((one))
 ORDER BY 1, 2;
