-- L2, R3: every function, view, index and column is there as it was defined, and nothing on Detent's tables that Detent
-- did not install.
-- Generated from the migrations by `python -m detent.store.invariants.generate`; a test keeps it equal.
-- The bodies of the verbs' functions are compared with the setting detent.functions, a JSON object of name and digest,
-- if the caller has set it and the database has the functions of the same version (detent.functions_mark).
WITH wanted_index (name, digest) AS (VALUES
    ('job_key_expiring', 'b4e4e94a700172e089a7953c5d37e937'),
    ('ready_expiring', '5bc1f6ec0902a7d9ea8e3b9c02fc9130'),
    ('waiting_due', 'e89e4a7bba42e66e78896bafe34e1fbe'),
    ('waiting_limited', '4331fc1b7f77e57487d254ee0d0ecee1'),
    ('waiting_expiring', 'c603a254d979d9b1966e3be7eba8fe7b'),
    ('lease_expiring', 'e5958c25b2fee94b31c0b9716a88f538'),
    ('transition_log_of_job', '600c8ad529a3a1e7354ae80e6b3413ac'),
    ('transition_log_of_entity', 'dbed885d51ba70c60d4d726467925b3d'),
    ('rate_limit_of_template', 'fd3d6c08f8388771a9cf29d6a078c704'),
    ('alert_firing', '72adb2700afeb0619d3fa5b3cfc3f7a8'),
    ('alert_resolved', 'bd23af26ddb4b8183d186b8953f949ef'),
    ('alert_notice_to_spread', 'cd01e3e97f9cbd5d673a4d4805a193c6'),
    ('alert_notice_at', '5c720d3921c86123191226363b870ddd'),
    ('alert_delivery_pending', '66436c1a61d658a8ab4aa567ee396bbb'),
    ('alert_delivery_sent', '4257356d59751ff1f3984961033c42be'),
    ('execution_troubled', '497f7de404d1bfe3750d8737e53703d8'),
    ('rate_limit_open', '39ebc28fc0bcda306f3db627aa4f8e6d'),
    ('batch_run_to_reconcile', '20543c731083faaac21f2102375927ff'),
    ('batch_action_of_run', 'fd9f6b8be22477df0882e9ee16ef3609'),
    ('ops_run_of_environment', '711d2fbf3cbbdd422b40deb6e638d676'),
    ('portion_open', 'b181c15bb275274be216cb198b522d80'),
    ('horizon_before', 'd24edbbc1333a82ba741800da237086c'),
    ('untold_of_task', '5b99cf6eeeda46a187bcb07783e9d80b'),
    ('job_by_run', '97e2bdd93e8c0ad1b38d6c03612d6569'),
    ('job_by_correlation', '8ed4377ecf4d582748d96aefffbf0d1e'),
    ('job_key_of_job', '6f5afa0e4dcdd8529129e59ec5cc802b'),
    ('transition_log_by_time', '8cdec73f4d83351348ceb9a936e3ab57'),
    ('transition_log_by_actor', '6d0783a3edb88c1fd2ba8d18066fe5d5'),
    ('lane_of_tenant', 'd73073b78ee74d33efddc267b90f4816'),
    ('batch_action_by_time', '26e674d04fa0416c3e48da359282007f'),
    ('batch_run_by_end', '709ca2d50931aee178d6a9d7bf550b85')
  ),
  wanted_column (relation, name, type, required, standard) AS (VALUES
    ('migration', 'version', 'integer', true, ''), ('migration', 'name', 'text', true, ''), ('migration', 'checksum', 'text', true, ''), ('migration', 'oldest_code', 'integer', true, ''), ('migration', 'applied_at', 'timestamp with time zone', true, ''),
    ('job', 'id', 'bigint', true, ''), ('job', 'tenant', 'text', true, ''''''), ('job', 'task', 'text', true, ''), ('job', 'queue', 'text', true, '''default'''), ('job', 'priority', 'smallint', true, '0'), ('job', 'due_at', 'timestamp with time zone', true, ''), ('job', 'expires_at', 'timestamp with time zone', false, ''), ('job', 'payload', 'text', true, ''), ('job', 'metadata', 'text', false, ''), ('job', 'correlation_id', 'text', false, ''), ('job', 'traceparent', 'text', false, ''), ('job', 'run_id', 'bigint', false, ''), ('job', 'nonce', 'bigint', true, ''), ('job', 'created_at', 'timestamp with time zone', true, ''), ('job', 'attempts_max', 'integer', true, ''), ('job', 'dead_letter', 'boolean', true, 'true'), ('job', 'idempotent', 'boolean', true, 'true'), ('job', 'limit_key', 'text', false, ''), ('job', 'state', 'text', true, '''pending'''), ('job', 'attempt', 'integer', true, '0'), ('job', 'spared', 'integer', true, '0'), ('job', 'ended', 'integer', true, '0'), ('job', 'result', 'text', false, ''), ('job', 'error', 'text', false, ''), ('job', 'finished_at', 'timestamp with time zone', false, ''), ('job', 'cancel_requested_at', 'timestamp with time zone', false, ''), ('job', 'cancel_requested_by', 'text', false, ''), ('job', 'cancel_reason', 'text', false, ''), ('job', 'lease_id', 'bigint', false, ''), ('job', 'leased_at', 'timestamp with time zone', false, ''), ('job', 'started_at', 'timestamp with time zone', false, ''), ('job', 'committed_at', 'timestamp with time zone', false, ''), ('job', 'effect_told_by', 'text', false, ''), ('job', 'result_dropped_at', 'timestamp with time zone', false, ''), ('job', 'cost', 'integer', false, ''),
    ('job_key', 'tenant', 'text', true, ''''''), ('job_key', 'key', 'text', true, ''), ('job_key', 'job_id', 'bigint', true, ''), ('job_key', 'fingerprint', 'text', true, ''), ('job_key', 'expires_at', 'timestamp with time zone', false, ''), ('job_key', 'until_claim', 'boolean', true, 'false'),
    ('queue', 'name', 'text', true, ''), ('queue', 'paused_at', 'timestamp with time zone', false, ''), ('queue', 'paused_by', 'text', false, ''), ('queue', 'reason', 'text', false, ''),
    ('lane', 'id', 'bigint', true, ''), ('lane', 'queue', 'text', true, ''), ('lane', 'task', 'text', true, ''), ('lane', 'tenant', 'text', true, ''), ('lane', 'priority', 'smallint', true, ''), ('lane', 'limit_key', 'text', true, ''''''),
    ('ready', 'lane_id', 'bigint', true, ''), ('ready', 'ready_at', 'timestamp with time zone', true, ''), ('ready', 'job_id', 'bigint', true, ''), ('ready', 'holds_key', 'boolean', true, 'false'), ('ready', 'expires_at', 'timestamp with time zone', false, ''),
    ('waiting', 'job_id', 'bigint', true, ''), ('waiting', 'lane_id', 'bigint', true, ''), ('waiting', 'due_at', 'timestamp with time zone', true, ''), ('waiting', 'holds_key', 'boolean', true, 'false'), ('waiting', 'expires_at', 'timestamp with time zone', false, ''), ('waiting', 'limit_key', 'text', false, ''), ('waiting', 'priority', 'smallint', true, ''),
    ('lease', 'id', 'bigint', true, ''), ('lease', 'worker', 'text', true, ''), ('lease', 'leased_at', 'timestamp with time zone', true, ''), ('lease', 'expires_at', 'timestamp with time zone', true, ''), ('lease', 'job_ids', 'bigint[]', true, ''),
    ('execution', 'job_id', 'bigint', true, ''), ('execution', 'attempt', 'integer', true, ''), ('execution', 'worker', 'text', true, ''), ('execution', 'leased_at', 'timestamp with time zone', true, ''), ('execution', 'started_at', 'timestamp with time zone', false, ''), ('execution', 'committed_at', 'timestamp with time zone', false, ''), ('execution', 'done_at', 'timestamp with time zone', false, ''), ('execution', 'aborted_at', 'timestamp with time zone', false, ''), ('execution', 'outcome', 'text', true, ''), ('execution', 'error', 'text', false, ''), ('execution', 'next_state', 'text', true, ''), ('execution', 'next_due_at', 'timestamp with time zone', false, ''), ('execution', 'counted', 'boolean', true, ''),
    ('transition_log', 'n', 'bigint', true, ''), ('transition_log', 'tenant', 'text', true, ''''''), ('transition_log', 'entity', 'text', true, ''), ('transition_log', 'entity_id', 'text', true, ''), ('transition_log', 'job_id', 'bigint', false, ''), ('transition_log', 'attempt', 'integer', true, '0'), ('transition_log', 'from_state', 'text', false, ''), ('transition_log', 'to_state', 'text', true, ''), ('transition_log', 'trigger', 'text', true, ''), ('transition_log', 'actor', 'text', true, ''), ('transition_log', 'reason', 'text', false, ''), ('transition_log', 'metadata', 'text', false, ''), ('transition_log', 'correlation_id', 'text', false, ''), ('transition_log', 'forced', 'boolean', true, 'false'), ('transition_log', 'at', 'timestamp with time zone', true, ''),
    ('event', 'job_id', 'bigint', true, ''), ('event', 'seq', 'integer', true, ''), ('event', 'attempt', 'integer', true, ''), ('event', 'level', 'text', true, ''), ('event', 'message', 'text', true, ''), ('event', 'payload', 'text', false, ''), ('event', 'key', 'text', false, ''), ('event', 'at', 'timestamp with time zone', true, ''),
    ('dead', 'job_id', 'bigint', true, ''), ('dead', 'tenant', 'text', true, ''), ('dead', 'queue', 'text', true, ''), ('dead', 'task', 'text', true, ''), ('dead', 'reason', 'text', true, ''), ('dead', 'quarantined_at', 'timestamp with time zone', true, ''),
    ('horizon', 'n', 'bigint', true, ''), ('horizon', 'before', 'timestamp with time zone', true, ''), ('horizon', 'actor', 'text', true, ''), ('horizon', 'at', 'timestamp with time zone', true, ''),
    ('worker', 'id', 'bigint', true, ''), ('worker', 'name', 'text', true, ''), ('worker', 'host', 'text', true, ''), ('worker', 'pid', 'integer', true, ''), ('worker', 'queues', 'text', false, ''), ('worker', 'tasks', 'text', true, ''), ('worker', 'slots', 'integer', true, ''), ('worker', 'running', 'integer', true, ''), ('worker', 'stopping', 'boolean', true, 'false'), ('worker', 'started_at', 'timestamp with time zone', true, ''), ('worker', 'seen_at', 'timestamp with time zone', true, ''),
    ('service', 'name', 'text', true, ''), ('service', 'holder', 'bigint', true, ''), ('service', 'term', 'bigint', true, ''), ('service', 'expires_at', 'timestamp with time zone', true, ''),
    ('schedule', 'name', 'text', true, ''), ('schedule', 'tenant', 'text', true, ''''''), ('schedule', 'cron', 'text', true, ''), ('schedule', 'zone', 'text', true, ''), ('schedule', 'catch_up', 'text', true, ''), ('schedule', 'task', 'text', true, ''), ('schedule', 'payload', 'text', true, ''), ('schedule', 'queue', 'text', true, ''), ('schedule', 'priority', 'smallint', true, '0'), ('schedule', 'attempts_max', 'integer', true, ''), ('schedule', 'dead_letter', 'boolean', true, 'true'), ('schedule', 'idempotent', 'boolean', true, 'true'), ('schedule', 'next_at', 'timestamp with time zone', true, ''), ('schedule', 'last_at', 'timestamp with time zone', false, ''), ('schedule', 'paused_at', 'timestamp with time zone', false, ''), ('schedule', 'paused_by', 'text', false, ''), ('schedule', 'reason', 'text', false, ''), ('schedule', 'changed_at', 'timestamp with time zone', true, ''), ('schedule', 'unique_pending', 'boolean', true, 'false'), ('schedule', 'limit_key', 'text', false, ''), ('schedule', 'cost', 'integer', false, ''),
    ('schedule_fire', 'schedule', 'text', true, ''), ('schedule_fire', 'fire_at', 'timestamp with time zone', true, ''), ('schedule_fire', 'job_id', 'bigint', false, ''), ('schedule_fire', 'at', 'timestamp with time zone', true, ''),
    ('operation', 'id', 'bigint', true, ''), ('operation', 'action', 'text', true, ''), ('operation', 'state', 'text', true, '''running'''), ('operation', 'filter', 'text', true, ''), ('operation', 'argument', 'text', false, ''), ('operation', 'actor', 'text', true, ''), ('operation', 'reason', 'text', false, ''), ('operation', 'until_id', 'bigint', true, ''), ('operation', 'after_id', 'bigint', true, '0'), ('operation', 'looked_at', 'bigint', true, '0'), ('operation', 'changed', 'bigint', true, '0'), ('operation', 'refused', 'bigint', true, '0'), ('operation', 'created_at', 'timestamp with time zone', true, ''), ('operation', 'finished_at', 'timestamp with time zone', false, ''),
    ('recovery', 'queue', 'text', true, ''), ('recovery', 'stale_after', 'double precision', false, ''), ('recovery', 'stalled_after', 'double precision', false, ''), ('recovery', 'changed_by', 'text', true, ''), ('recovery', 'reason', 'text', false, ''), ('recovery', 'changed_at', 'timestamp with time zone', true, ''),
    ('rate_limit', 'key', 'text', true, ''), ('rate_limit', 'rate', 'double precision', false, ''), ('rate_limit', 'per', 'double precision', true, ''), ('rate_limit', 'burst', 'double precision', true, ''), ('rate_limit', 'concurrency_max', 'integer', false, ''), ('rate_limit', 'tokens', 'double precision', true, ''), ('rate_limit', 'refilled_at', 'timestamp with time zone', true, ''), ('rate_limit', 'paused_until', 'timestamp with time zone', false, ''), ('rate_limit', 'throttled', 'integer', true, '0'), ('rate_limit', 'throttled_at', 'timestamp with time zone', false, ''), ('rate_limit', 'open_until', 'timestamp with time zone', false, ''), ('rate_limit', 'template', 'text', false, ''), ('rate_limit', 'held_at', 'timestamp with time zone', false, ''),
    ('limit_member', 'kind', 'text', true, ''), ('limit_member', 'name', 'text', true, ''), ('limit_member', 'limit_key', 'text', true, ''),
    ('limit_slot', 'limit_key', 'text', true, ''), ('limit_slot', 'job_id', 'bigint', true, ''), ('limit_slot', 'attempt', 'integer', true, ''), ('limit_slot', 'cost', 'double precision', true, '1'),
    ('untold', 'job_id', 'bigint', true, ''), ('untold', 'task', 'text', true, ''), ('untold', 'taken_until', 'timestamp with time zone', false, ''), ('untold', 'attempt', 'integer', true, ''),
    ('alert', 'policy', 'text', true, ''), ('alert', 'scope', 'text', true, ''''''), ('alert', 'severity', 'text', true, ''), ('alert', 'state', 'text', true, ''), ('alert', 'episode', 'integer', true, '1'), ('alert', 'message', 'text', true, ''), ('alert', 'facts', 'text', false, ''), ('alert', 'value', 'double precision', false, ''), ('alert', 'raised', 'bigint', true, '1'), ('alert', 'since', 'timestamp with time zone', true, ''), ('alert', 'last_at', 'timestamp with time zone', true, ''), ('alert', 'told_at', 'timestamp with time zone', true, ''), ('alert', 'resolved_at', 'timestamp with time zone', false, ''), ('alert', 'acknowledged_at', 'timestamp with time zone', false, ''), ('alert', 'acknowledged_by', 'text', false, ''), ('alert', 'acknowledged_reason', 'text', false, ''),
    ('alert_policy', 'name', 'text', true, ''), ('alert_policy', 'measure', 'text', true, ''), ('alert_policy', 'each', 'text', true, ''), ('alert_policy', 'severity', 'text', true, ''), ('alert_policy', 'threshold', 'double precision', false, ''), ('alert_policy', 'window_seconds', 'double precision', true, ''), ('alert_policy', 'count_min', 'integer', true, ''), ('alert_policy', 'calm_seconds', 'double precision', true, ''), ('alert_policy', 'message', 'text', true, ''), ('alert_policy', 'enabled', 'boolean', true, ''), ('alert_policy', 'changed_by', 'text', true, ''), ('alert_policy', 'reason', 'text', false, ''), ('alert_policy', 'changed_at', 'timestamp with time zone', true, ''),
    ('alert_notice', 'n', 'bigint', true, ''), ('alert_notice', 'policy', 'text', true, ''), ('alert_notice', 'scope', 'text', true, ''), ('alert_notice', 'episode', 'integer', true, ''), ('alert_notice', 'kind', 'text', true, ''), ('alert_notice', 'severity', 'text', true, ''), ('alert_notice', 'message', 'text', true, ''), ('alert_notice', 'facts', 'text', false, ''), ('alert_notice', 'value', 'double precision', false, ''), ('alert_notice', 'since', 'timestamp with time zone', true, ''), ('alert_notice', 'at', 'timestamp with time zone', true, ''), ('alert_notice', 'spread', 'boolean', true, 'false'),
    ('alert_delivery', 'notice_n', 'bigint', true, ''), ('alert_delivery', 'sink', 'text', true, ''), ('alert_delivery', 'state', 'text', true, '''pending'''), ('alert_delivery', 'tries', 'integer', true, '0'), ('alert_delivery', 'due_at', 'timestamp with time zone', true, ''), ('alert_delivery', 'taken_until', 'timestamp with time zone', false, ''), ('alert_delivery', 'sent_at', 'timestamp with time zone', false, ''), ('alert_delivery', 'error', 'text', false, ''),
    ('alert_tally', 'minute', 'timestamp with time zone', true, ''), ('alert_tally', 'queue', 'text', true, ''), ('alert_tally', 'task', 'text', true, ''), ('alert_tally', 'succeeded', 'bigint', true, ''), ('alert_tally', 'failed', 'bigint', true, ''),
    ('alert_look', 'name', 'text', true, ''), ('alert_look', 'at', 'timestamp with time zone', true, ''),
    ('batch_run', 'id', 'bigint', true, ''), ('batch_run', 'tenant', 'text', true, ''''''), ('batch_run', 'batch', 'text', true, ''), ('batch_run', 'payload', 'text', true, ''), ('batch_run', 'fingerprint', 'text', true, ''), ('batch_run', 'state', 'text', true, '''preview'''), ('batch_run', 'actor', 'text', true, ''), ('batch_run', 'reason', 'text', false, ''), ('batch_run', 'correlation_id', 'text', false, ''), ('batch_run', 'metadata', 'text', false, ''), ('batch_run', 'tolerate_count', 'integer', false, ''), ('batch_run', 'tolerate_share', 'double precision', false, ''), ('batch_run', 'total', 'integer', true, '0'), ('batch_run', 'previewed', 'integer', true, '0'), ('batch_run', 'preview_failed', 'integer', true, '0'), ('batch_run', 'unchanged', 'integer', true, '0'), ('batch_run', 'queued', 'integer', true, '0'), ('batch_run', 'applying', 'integer', true, '0'), ('batch_run', 'applied', 'integer', true, '0'), ('batch_run', 'failed', 'integer', true, '0'), ('batch_run', 'rolled_back', 'integer', true, '0'), ('batch_run', 'outstanding', 'integer', true, '0'), ('batch_run', 'reverting', 'integer', true, '0'), ('batch_run', 'revert_failed', 'integer', true, '0'), ('batch_run', 'stuck', 'integer', true, '0'), ('batch_run', 'mismatches', 'integer', true, '0'), ('batch_run', 'error', 'text', false, ''), ('batch_run', 'created_at', 'timestamp with time zone', true, ''), ('batch_run', 'planned_at', 'timestamp with time zone', false, ''), ('batch_run', 'previewed_at', 'timestamp with time zone', false, ''), ('batch_run', 'queued_at', 'timestamp with time zone', false, ''), ('batch_run', 'started_at', 'timestamp with time zone', false, ''), ('batch_run', 'finished_at', 'timestamp with time zone', false, ''), ('batch_run', 'rollback_requested_at', 'timestamp with time zone', false, ''), ('batch_run', 'rollback_requested_by', 'text', false, ''), ('batch_run', 'rollback_reason', 'text', false, ''), ('batch_run', 'rolled_back_at', 'timestamp with time zone', false, ''), ('batch_run', 'reconcile_no', 'integer', true, '0'), ('batch_run', 'reconcile_at', 'timestamp with time zone', false, ''), ('batch_run', 'reconciled_at', 'timestamp with time zone', false, ''), ('batch_run', 'moved_at', 'timestamp with time zone', true, ''), ('batch_run', 'critical', 'text', false, ''), ('batch_run', 'overwrite', 'boolean', true, 'false'), ('batch_run', 'conflicts', 'integer', true, '0'),
    ('target', 'run_id', 'bigint', true, ''), ('target', 'n', 'integer', true, ''), ('target', 'ref', 'text', true, ''), ('target', 'state', 'text', true, '''preview'''), ('target', 'before', 'text', false, ''), ('target', 'after', 'text', false, ''), ('target', 'changed', 'boolean', false, ''), ('target', 'preview_error', 'text', false, ''), ('target', 'error', 'text', false, ''), ('target', 'apply_job_id', 'bigint', false, ''), ('target', 'revert_job_id', 'bigint', false, ''), ('target', 'revert_state', 'text', false, ''), ('target', 'created_at', 'timestamp with time zone', true, ''), ('target', 'previewed_at', 'timestamp with time zone', false, ''), ('target', 'queued_at', 'timestamp with time zone', false, ''), ('target', 'applied_at', 'timestamp with time zone', false, ''), ('target', 'rolled_back_at', 'timestamp with time zone', false, ''), ('target', 'moved_at', 'timestamp with time zone', true, ''), ('target', 'conflict', 'text', false, ''),
    ('batch_action', 'id', 'bigint', true, ''), ('batch_action', 'run_id', 'bigint', true, ''), ('batch_action', 'action', 'text', true, ''), ('batch_action', 'actor', 'text', true, ''), ('batch_action', 'reason', 'text', false, ''), ('batch_action', 'metadata', 'text', false, ''), ('batch_action', 'chosen', 'integer', false, ''), ('batch_action', 'unchanged', 'boolean', true, 'false'), ('batch_action', 'job_id', 'bigint', true, ''), ('batch_action', 'cursor', 'integer', true, '0'), ('batch_action', 'moved', 'integer', true, '0'), ('batch_action', 'created_at', 'timestamp with time zone', true, ''), ('batch_action', 'done_at', 'timestamp with time zone', false, ''),
    ('batch_choice', 'action_id', 'bigint', true, ''), ('batch_choice', 'n', 'integer', true, ''),
    ('reconciliation', 'run_id', 'bigint', true, ''), ('reconciliation', 'no', 'integer', true, ''), ('reconciliation', 'planned', 'integer', false, ''), ('reconciliation', 'actor', 'text', true, ''), ('reconciliation', 'job_id', 'bigint', true, ''), ('reconciliation', 'cursor', 'integer', true, '0'), ('reconciliation', 'checked', 'integer', true, '0'), ('reconciliation', 'mismatched', 'integer', true, '0'), ('reconciliation', 'created_at', 'timestamp with time zone', true, ''), ('reconciliation', 'done_at', 'timestamp with time zone', false, ''),
    ('mismatch', 'run_id', 'bigint', true, ''), ('mismatch', 'n', 'integer', true, ''), ('mismatch', 'no', 'integer', true, ''), ('mismatch', 'expected', 'text', false, ''), ('mismatch', 'actual', 'text', false, ''), ('mismatch', 'found_at', 'timestamp with time zone', true, ''), ('mismatch', 'checked_at', 'timestamp with time zone', true, ''), ('mismatch', 'resolved_at', 'timestamp with time zone', false, ''),
    ('ops_environment', 'id', 'bigint', true, ''), ('ops_environment', 'project_id', 'text', true, ''), ('ops_environment', 'name', 'text', true, ''), ('ops_environment', 'created_at', 'timestamp with time zone', true, ''),
    ('ops_run', 'job_id', 'bigint', true, ''), ('ops_run', 'environment_id', 'bigint', true, ''), ('ops_run', 'git_sha', 'text', false, ''), ('ops_run', 'git_ref', 'text', false, ''), ('ops_run', 'key', 'text', false, ''), ('ops_run', 'finish_metadata', 'text', false, ''),
    ('pipeline_run', 'id', 'bigint', true, ''), ('pipeline_run', 'tenant', 'text', true, ''''''), ('pipeline_run', 'name', 'text', true, ''), ('pipeline_run', 'payload', 'text', true, ''), ('pipeline_run', 'watermark', 'text', true, ''), ('pipeline_run', 'since', 'timestamp with time zone', false, ''), ('pipeline_run', 'captured_at', 'timestamp with time zone', true, ''), ('pipeline_run', 'is_full', 'boolean', true, ''), ('pipeline_run', 'is_forced', 'boolean', true, 'false'), ('pipeline_run', 'started_by', 'text', true, ''), ('pipeline_run', 'reason', 'text', false, ''), ('pipeline_run', 'retires', 'boolean', true, 'false'), ('pipeline_run', 'queue', 'text', true, ''), ('pipeline_run', 'priority', 'smallint', true, '0'), ('pipeline_run', 'replicas', 'integer', true, ''), ('pipeline_run', 'portion_size', 'integer', true, ''), ('pipeline_run', 'plan_job_id', 'bigint', true, ''), ('pipeline_run', 'state', 'text', true, '''created'''), ('pipeline_run', 'tolerated', 'integer', true, '0'), ('pipeline_run', 'partitions', 'integer', true, '0'), ('pipeline_run', 'parts_ended', 'integer', true, '0'), ('pipeline_run', 'parts_failed', 'integer', true, '0'), ('pipeline_run', 'portions', 'integer', true, '0'), ('pipeline_run', 'cut_key', 'text', true, ''''''), ('pipeline_run', 'finisher_job_id', 'bigint', false, ''), ('pipeline_run', 'finisher_attempt', 'integer', false, ''), ('pipeline_run', 'finisher_tries', 'integer', true, '0'), ('pipeline_run', 'retired', 'bigint', true, '0'), ('pipeline_run', 'error', 'text', false, ''), ('pipeline_run', 'created_at', 'timestamp with time zone', true, ''), ('pipeline_run', 'started_at', 'timestamp with time zone', false, ''), ('pipeline_run', 'finished_at', 'timestamp with time zone', false, ''), ('pipeline_run', 'moved_at', 'timestamp with time zone', true, ''),
    ('partition', 'run_id', 'bigint', true, ''), ('partition', 'n', 'integer', true, ''), ('partition', 'key', 'text', true, ''), ('partition', 'payload', 'text', true, ''), ('partition', 'job_id', 'bigint', true, ''), ('partition', 'state', 'text', true, '''pending'''), ('partition', 'next_offset', 'text', true, '''0'''), ('partition', 'last_page', 'boolean', true, 'false'), ('partition', 'tries', 'integer', true, '0'), ('partition', 'pages', 'integer', true, '0'), ('partition', 'records', 'bigint', true, '0'), ('partition', 'staged', 'bigint', true, '0'), ('partition', 'error', 'text', false, ''), ('partition', 'started_at', 'timestamp with time zone', false, ''), ('partition', 'paged_at', 'timestamp with time zone', false, ''), ('partition', 'ended_at', 'timestamp with time zone', false, ''),
    ('staged', 'run_id', 'bigint', true, ''), ('staged', 'key', 'text', true, ''), ('staged', 'data', 'text', true, ''), ('staged', 'partition_n', 'integer', true, ''),
    ('portion', 'run_id', 'bigint', true, ''), ('portion', 'n', 'integer', true, ''), ('portion', 'first_key', 'text', true, ''), ('portion', 'last_key', 'text', true, ''), ('portion', 'records', 'bigint', true, ''), ('portion', 'tries', 'integer', true, '0'), ('portion', 'job_id', 'bigint', true, ''), ('portion', 'attempt', 'integer', true, ''), ('portion', 'done_at', 'timestamp with time zone', false, ''),
    ('seen', 'tenant', 'text', true, ''), ('seen', 'watermark', 'text', true, ''), ('seen', 'key', 'text', true, ''),
    ('watermark', 'tenant', 'text', true, ''), ('watermark', 'name', 'text', true, ''), ('watermark', 'value', 'timestamp with time zone', true, ''), ('watermark', 'run_id', 'bigint', true, ''), ('watermark', 'moved_at', 'timestamp with time zone', true, ''),
    ('task_times', 'task', 'text', true, ''), ('task_times', 'stale_after', 'double precision', false, ''), ('task_times', 'stalled_after', 'double precision', false, ''), ('task_times', 'result_ttl', 'double precision', false, ''),
    ('declaration', 'kind', 'text', true, ''), ('declaration', 'name', 'text', true, ''), ('declaration', 'n', 'integer', true, ''), ('declaration', 'fingerprint', 'text', true, ''), ('declaration', 'at', 'timestamp with time zone', true, ''),
    ('identity', 'n', 'integer', true, ''), ('identity', 'identity', 'text', true, ''), ('identity', 'first_id', 'bigint', true, ''), ('identity', 'made_by', 'text', true, ''), ('identity', 'reason', 'text', false, ''), ('identity', 'made_at', 'timestamp with time zone', true, ''),
    ('lifecycle', 'name', 'text', true, ''), ('lifecycle', 'version', 'integer', true, ''), ('lifecycle', 'table_name', 'text', true, ''), ('lifecycle', 'attached_at', 'timestamp with time zone', true, ''),
    ('watch', 'one', 'boolean', true, 'true'), ('watch', 'watched_at', 'timestamp with time zone', false, ''), ('watch', 'gap_from', 'timestamp with time zone', false, ''), ('watch', 'gap_to', 'timestamp with time zone', false, ''),
    ('finished_count', 'tenant', 'text', true, ''), ('finished_count', 'queue', 'text', true, ''), ('finished_count', 'task', 'text', true, ''), ('finished_count', 'state', 'text', true, ''), ('finished_count', 'jobs', 'bigint', true, ''),
    ('finished_delta', 'n', 'bigint', true, ''), ('finished_delta', 'tenant', 'text', true, ''), ('finished_delta', 'queue', 'text', true, ''), ('finished_delta', 'task', 'text', true, ''), ('finished_delta', 'state', 'text', true, ''), ('finished_delta', 'jobs', 'bigint', true, ''),
    ('succeeded_batch', 'n', 'bigint', true, ''), ('succeeded_batch', 'job_ids', 'bigint[]', true, ''),
    ('lane_group', 'id', 'integer', true, ''), ('lane_group', 'queue', 'text', true, ''), ('lane_group', 'task', 'text', true, ''),
    ('job_span', 'created_at', 'timestamp with time zone', true, ''), ('job_span', 'block', 'bigint', true, ''), ('job_span', 'first_id', 'bigint', true, ''), ('job_span', 'last_id', 'bigint', true, ''),
    ('unsuccessful', 'state', 'text', true, ''), ('unsuccessful', 'job_id', 'bigint', true, ''),
    ('transition_hour', 'hour', 'timestamp with time zone', true, ''), ('transition_hour', 'task', 'text', true, ''), ('transition_hour', 'from_state', 'text', true, ''), ('transition_hour', 'to_state', 'text', true, ''), ('transition_hour', 'outcome', 'text', true, ''), ('transition_hour', 'bucket', 'bigint', true, ''), ('transition_hour', 'moves', 'bigint', true, ''), ('transition_hour', 'held_us', 'bigint', true, ''), ('transition_hour', 'held_us_max', 'bigint', true, ''), ('transition_hour', 'ran_us', 'bigint', true, ''), ('transition_hour', 'ran_us_max', 'bigint', true, ''), ('transition_hour', 'waited_us', 'bigint', true, ''), ('transition_hour', 'waited_us_max', 'bigint', true, ''),
    ('transition_delta', 'n', 'bigint', true, ''), ('transition_delta', 'at', 'timestamp with time zone', true, ''), ('transition_delta', 'task', 'text', true, ''), ('transition_delta', 'from_state', 'text', true, ''), ('transition_delta', 'to_state', 'text', true, ''), ('transition_delta', 'outcome', 'text', true, ''), ('transition_delta', 'held_us', 'bigint', true, ''), ('transition_delta', 'ran_us', 'bigint', false, ''), ('transition_delta', 'waited_us', 'bigint', true, '')
  ),
  wanted_view (name) AS (VALUES
    ('executions'),
    ('transition'),
    ('target_transition'),
    ('ops_runs'),
    ('pipeline_runs'),
    ('attempt_times'),
    ('job_counts'),
    ('transition_counts'),
    ('batch_counts'),
    ('attempt_figures'),
    ('task_figures'),
    ('transition_figures'),
    ('ops_figures'),
    ('batch_figures')
  ),
  wanted_trigger (name) AS (VALUES
    ('job_guard'),
    ('job_frozen'),
    ('job_begins'),
    ('job_goes'),
    ('job_keep_all'),
    ('execution_keep'),
    ('execution_keep_all'),
    ('event_keep'),
    ('event_keep_all'),
    ('transition_log_keep'),
    ('transition_log_keep_all'),
    ('horizon_keep'),
    ('horizon_keep_all'),
    ('migration_keep'),
    ('migration_keep_all'),
    ('job_effect'),
    ('job_moves_target'),
    ('job_moved'),
    ('target_counts'),
    ('target_counts_new'),
    ('batch_run_settle'),
    ('batch_run_guard'),
    ('batch_run_frozen'),
    ('batch_run_begins'),
    ('batch_run_goes'),
    ('batch_run_keep_all'),
    ('target_guard'),
    ('target_agrees'),
    ('target_frozen'),
    ('target_begins'),
    ('target_goes'),
    ('target_keep_all'),
    ('job_ops_run'),
    ('ops_run_keep'),
    ('ops_run_goes'),
    ('ops_run_keep_all'),
    ('ops_environment_keep'),
    ('ops_environment_keep_all'),
    ('pipeline_run_begins'),
    ('pipeline_run_guard'),
    ('pipeline_run_frozen'),
    ('pipeline_run_goes'),
    ('partition_begins'),
    ('partition_guard'),
    ('partition_frozen'),
    ('watermark_guard'),
    ('pipeline_follows_job'),
    ('pipeline_follows_partition'),
    ('pipeline_fans_in'),
    ('pipeline_enqueues'),
    ('job_result'),
    ('identity_begins'),
    ('identity_keep'),
    ('identity_keep_all'),
    ('batch_run_mismatches'),
    ('job_counted')
  ),
  ours AS (
    SELECT c.oid, c.relname FROM pg_catalog.pg_class c
     WHERE c.relnamespace = 'detent'::regnamespace AND c.relkind IN ('r', 'p')
  ),
  body AS (
    SELECT e.key AS name, e.value AS digest
      FROM jsonb_each_text(coalesce(nullif(current_setting('detent.functions', true), ''), '{}')::jsonb) e
     WHERE current_setting('detent.functions_mark', true)
           IS NOT DISTINCT FROM obj_description(to_regprocedure('detent.migrations_v1()'), 'pg_proc')
  )
SELECT 'index' AS entity, w.name AS entity_id,
       CASE WHEN x.indexrelid IS NULL THEN 'it is missing'
            WHEN NOT (x.indisvalid AND x.indisready) THEN 'it is not valid'
            ELSE 'its definition was changed' END AS detail
  FROM wanted_index w LEFT JOIN pg_catalog.pg_index x ON x.indexrelid = to_regclass('detent.' || w.name)
 WHERE x.indexrelid IS NULL OR NOT (x.indisvalid AND x.indisready) OR md5(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(lower(split_part(pg_get_indexdef(x.indexrelid), ' ON ', 2)), '::(text|bigint|integer|smallint|boolean|double precision|timestamp with time zone|numeric|interval|jsonb)(\[\])?', '', 'g'), '= any \(array\[', ' in ', 'g'), '<> all \(array\[', ' not in ', 'g'), ' using btree ', '', 'g'), ' not valid$', '', 'g'), '[\s()\[\]]', '', 'g')) <> w.digest
UNION ALL
SELECT 'column', w.relation || '.' || w.name,
       CASE WHEN a.attnum IS NULL THEN 'it is missing' ELSE 'its type, its default or NOT NULL was changed' END
  FROM wanted_column w
  LEFT JOIN pg_catalog.pg_attribute a
    ON a.attrelid = to_regclass('detent.' || w.relation) AND a.attname = w.name AND NOT a.attisdropped
  LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
 WHERE a.attnum IS NULL OR format_type(a.atttypid, a.atttypmod) <> w.type OR a.attnotnull <> w.required
    OR regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(lower(coalesce(pg_get_expr(d.adbin, d.adrelid), '')), '::(text|bigint|integer|smallint|boolean|double precision|timestamp with time zone|numeric|interval|jsonb)(\[\])?', '', 'g'), '= any \(array\[', ' in ', 'g'), '<> all \(array\[', ' not in ', 'g'), ' using btree ', '', 'g'), ' not valid$', '', 'g'), '[\s()\[\]]', '', 'g') <> w.standard
UNION ALL
SELECT 'view', w.name, 'it is missing'
  FROM wanted_view w
 WHERE NOT EXISTS (SELECT 1 FROM pg_catalog.pg_class c
                    WHERE c.oid = to_regclass('detent.' || w.name) AND c.relkind = 'v')
UNION ALL
SELECT 'function', b.name,
       CASE WHEN NOT EXISTS (SELECT 1 FROM pg_catalog.pg_proc p
                              WHERE p.proname = b.name AND p.pronamespace = 'detent'::regnamespace)
            THEN 'it is missing' ELSE 'its body was changed' END
  FROM body b
 WHERE NOT EXISTS (SELECT 1 FROM pg_catalog.pg_proc p
                    WHERE p.proname = b.name AND p.pronamespace = 'detent'::regnamespace AND md5(p.prosrc) = b.digest)
UNION ALL
SELECT 'rule', o.relname || '.' || r.rulename, 'Detent did not install it'
  FROM ours o JOIN pg_catalog.pg_rewrite r ON r.ev_class = o.oid
UNION ALL
SELECT 'row_security', c.relname, 'row security is on: rows can be hidden from workers'
  FROM pg_catalog.pg_class c JOIN ours o ON o.oid = c.oid
 WHERE c.relrowsecurity OR c.relforcerowsecurity
UNION ALL
SELECT 'strange_trigger', o.relname || '.' || t.tgname, 'Detent did not install it'
  FROM ours o JOIN pg_catalog.pg_trigger t ON t.tgrelid = o.oid AND NOT t.tgisinternal
 WHERE t.tgname NOT IN (SELECT w.name FROM wanted_trigger w)
 ORDER BY 1, 2;
