-- L2, R3: every function, view and index is there, and nothing on Detent's tables that Detent did not install.
-- Generated from the migrations by `python -m detent.store.invariants.generate`; a test keeps it equal.
-- The bodies of the verbs' functions are compared with the setting detent.functions, a JSON object of name and digest,
-- if the caller has set it and the database has the functions of the same version (detent.functions_mark).
WITH wanted_index (name) AS (VALUES
    ('job_key_expiring'),
    ('ready_expiring'),
    ('waiting_due'),
    ('waiting_limited'),
    ('waiting_expiring'),
    ('lease_expiring'),
    ('transition_log_of_job'),
    ('transition_log_of_entity'),
    ('rate_limit_of_template'),
    ('alert_firing'),
    ('alert_resolved'),
    ('alert_notice_to_spread'),
    ('alert_notice_at'),
    ('alert_delivery_pending'),
    ('alert_delivery_sent'),
    ('execution_troubled'),
    ('rate_limit_open'),
    ('batch_run_to_reconcile'),
    ('batch_action_of_run'),
    ('ops_run_of_environment'),
    ('portion_open'),
    ('horizon_before'),
    ('untold_of_task'),
    ('job_by_time'),
    ('job_by_run'),
    ('job_by_correlation'),
    ('job_key_of_job'),
    ('transition_log_by_time'),
    ('transition_log_by_actor')
  ),
  wanted_view (name) AS (VALUES
    ('executions'),
    ('transition'),
    ('target_transition'),
    ('ops_runs'),
    ('pipeline_runs'),
    ('attempt_times')
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
    ('batch_run_mismatches')
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
       CASE WHEN x.indexrelid IS NULL THEN 'it is missing' ELSE 'it is not valid' END AS detail
  FROM wanted_index w LEFT JOIN pg_catalog.pg_index x ON x.indexrelid = to_regclass('detent.' || w.name)
 WHERE x.indexrelid IS NULL OR NOT (x.indisvalid AND x.indisready)
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
