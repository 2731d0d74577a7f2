-- L2, E1, G4, R3: every guard is there, enabled, for the same events and columns, with its function's own body.
-- Generated from the migrations by `python -m detent.store.invariants.generate`; a test keeps it equal.
WITH wanted (name, relation, function, kind, columns, conditional) AS (VALUES
    ('job_guard', 'job', 'job_guard', 17, 'attempt,committed_at,ended,error,finished_at,lease_id,leased_at,result,spared,started_at,state', true),
    ('job_frozen', 'job', 'job_refuse', 17, 'attempts_max,created_at,dead_letter,id,idempotent,nonce,payload,run_id,task,tenant', true),
    ('job_begins', 'job', 'job_refuse', 7, '', true),
    ('job_goes', 'job', 'job_refuse', 11, '', false),
    ('job_keep_all', 'job', 'keep', 34, '', false),
    ('execution_keep', 'execution', 'keep', 27, '', false),
    ('execution_keep_all', 'execution', 'keep', 34, '', false),
    ('event_keep', 'event', 'keep', 27, '', false),
    ('event_keep_all', 'event', 'keep', 34, '', false),
    ('transition_log_keep', 'transition_log', 'keep', 27, '', false),
    ('transition_log_keep_all', 'transition_log', 'keep', 34, '', false),
    ('horizon_keep', 'horizon', 'keep', 27, '', false),
    ('horizon_keep_all', 'horizon', 'keep', 34, '', false),
    ('migration_keep', 'migration', 'keep', 27, '', false),
    ('migration_keep_all', 'migration', 'keep', 34, '', false),
    ('job_effect', 'job', 'effect_guard', 17, 'effect_told_by', true),
    ('job_moves_target', 'job', 'job_moves_target', 17, 'state', true),
    ('job_moved', 'job', 'job_moved', 16, 'state', false),
    ('target_counts', 'target', 'targets_count', 16, '', false),
    ('target_counts_new', 'target', 'targets_count', 4, '', false),
    ('batch_run_settle', 'batch_run', 'batch_run_settle', 17, 'applied,applying,failed,outstanding,queued,revert_failed,reverting', true),
    ('batch_run_guard', 'batch_run', 'batch_run_guard', 19, 'state', true),
    ('batch_run_frozen', 'batch_run', 'batch_run_refuse', 19, 'actor,batch,created_at,fingerprint,id,payload,tenant', true),
    ('batch_run_begins', 'batch_run', 'batch_run_refuse', 7, '', true),
    ('batch_run_goes', 'batch_run', 'batch_run_refuse', 11, '', false),
    ('batch_run_keep_all', 'batch_run', 'keep', 34, '', false),
    ('target_guard', 'target', 'target_guard', 19, 'state', true),
    ('target_agrees', 'target', 'target_agrees', 16, '', false),
    ('target_frozen', 'target', 'target_refuse', 19, 'after,apply_job_id,before,changed,created_at,n,preview_error,previewed_at,ref,revert_job_id,run_id', true),
    ('target_begins', 'target', 'target_refuse', 7, '', true),
    ('target_goes', 'target', 'target_refuse', 11, '', false),
    ('target_keep_all', 'target', 'keep', 34, '', false),
    ('job_ops_run', 'job', 'ops_run_moves', 17, 'started_at,state', true),
    ('ops_run_keep', 'ops_run', 'ops_keep', 19, '', true),
    ('ops_run_goes', 'ops_run', 'ops_keep', 11, '', false),
    ('ops_run_keep_all', 'ops_run', 'ops_keep', 34, '', false),
    ('ops_environment_keep', 'ops_environment', 'ops_keep', 27, '', false),
    ('ops_environment_keep_all', 'ops_environment', 'ops_keep', 34, '', false),
    ('pipeline_run_begins', 'pipeline_run', 'pipeline_run_guard', 7, '', true),
    ('pipeline_run_guard', 'pipeline_run', 'pipeline_run_guard', 19, 'state', true),
    ('pipeline_run_frozen', 'pipeline_run', 'pipeline_run_guard', 19, 'captured_at,created_at,id,is_forced,is_full,name,payload,plan_job_id,since,tenant,watermark', true),
    ('pipeline_run_goes', 'pipeline_run', 'pipeline_run_guard', 11, '', true),
    ('partition_begins', 'partition', 'partition_guard', 7, '', true),
    ('partition_guard', 'partition', 'partition_guard', 19, 'last_page,next_offset,pages,state', true),
    ('partition_frozen', 'partition', 'partition_guard', 19, 'job_id,key,n,payload,run_id', true),
    ('watermark_guard', 'watermark', 'watermark_guard', 31, '', false),
    ('pipeline_follows_job', 'job', 'pipeline_follows_job', 17, 'state', true),
    ('pipeline_follows_partition', 'partition', 'pipeline_follows_partition', 17, 'state', true),
    ('pipeline_fans_in', 'pipeline_run', 'pipeline_fans_in', 17, 'parts_ended,state', true),
    ('pipeline_enqueues', 'pipeline_run', 'pipeline_enqueues', 17, 'state', true),
    ('job_result', 'job', 'result_guard', 17, 'result_dropped_at', true),
    ('identity_begins', 'identity', 'identity_grows', 7, '', false),
    ('identity_keep', 'identity', 'keep', 27, '', false),
    ('identity_keep_all', 'identity', 'keep', 34, '', false),
    ('batch_run_mismatches', 'batch_run', 'batch_run_mismatches', 17, 'mismatches,reconciled_at', true)
  ),
  body (name, digest) AS (VALUES
    ('job_guard', 'f230ccdbd1ab3065df09b73f840fe069'),
    ('job_refuse', '37ef4510afa6a6d36e49d37b77b5bffc'),
    ('keep', '5b5bc561bcf411d3aa41b7a6c0f653ea'),
    ('entity_guard', '6cbcdb75c452e80595d34c9437cc1558'),
    ('effect_guard', '938799720e78c9eb65533b9ca1832dd1'),
    ('job_moves_target', '896b2cf2af9e87d8290a251e8d8436c0'),
    ('targets_follow', 'a6d3bb9248a183e3e17c4349a18c364f'),
    ('targets_count', '54d209e5d2043a20779ebb27426fd95b'),
    ('batch_run_settle', 'ba3575c1321a62cb96b9e887af8156f3'),
    ('batch_run_guard', '9590792127e2a2db13131cdf771b5fce'),
    ('batch_run_refuse', '13d209330393d6e77b4a88a4230d82c7'),
    ('target_guard', 'dfc39792cba80e5d1d10dd7b87b357a8'),
    ('target_agrees', '7362ea4c88969c7687ddd70a89ba0605'),
    ('target_refuse', 'a545bd421bd86e9492d04962e9e9dddd'),
    ('ops_run_moves', '83d41616908333c9f5d011270f2ba5ca'),
    ('ops_keep', '2e66220ae50af399f3e3bb1cd7758171'),
    ('pipeline_run_guard', 'e46f4d352906751bc9211916c92aab02'),
    ('partition_guard', '793c608ddc5e249f3893fd6d2b4d6fb5'),
    ('watermark_guard', '44aa5b49abc8c1bf6b815403b74d434b'),
    ('pipeline_follows_job', '10e7b9a020fb24cfd7c910ea83de1ce1'),
    ('pipeline_follows_partition', 'c9190d41bb908d1f3a47c55d3894a738'),
    ('pipeline_fans_in', '69c64e08717b7cd537a43e54f63b0167'),
    ('pipeline_enqueues', '838a9847139fab57278cff243096b080'),
    ('result_guard', 'f116198e8024111a008f80e04cf0df3a'),
    ('job_moved', '507a5818b3ddf9526e4a3bbdf573864b'),
    ('identity_grows', 'a2d55e2ae05f7819211e84e3ae789a9e'),
    ('batch_run_mismatches', 'b5a8f160b19f6d6386173daedfdfb9d7')
  )
SELECT 'trigger' AS entity, w.name AS entity_id,
       CASE WHEN t.oid IS NULL THEN 'it is missing on ' || w.relation
            WHEN t.tgenabled NOT IN ('O', 'A') THEN 'it is disabled on ' || w.relation
            ELSE 'it is not the guard of ' || w.relation || ' that was installed' END AS detail
  FROM wanted w
  LEFT JOIN pg_catalog.pg_trigger t
    ON t.tgname = w.name AND t.tgrelid = to_regclass('detent.' || w.relation) AND NOT t.tgisinternal
  LEFT JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid
 WHERE t.oid IS NULL OR t.tgenabled NOT IN ('O', 'A')
    OR t.tgtype <> w.kind OR p.proname <> w.function OR p.pronamespace <> 'detent'::regnamespace
    OR (t.tgqual IS NOT NULL) <> w.conditional
    OR w.columns <> coalesce((SELECT string_agg(a.attname, ',' ORDER BY a.attname COLLATE "C")
                                FROM pg_catalog.pg_attribute a
                               WHERE a.attrelid = t.tgrelid AND a.attnum = ANY (t.tgattr)), '')
UNION ALL
SELECT 'function', b.name, CASE WHEN p.oid IS NULL THEN 'it is missing' ELSE 'its body was changed' END
  FROM body b
  LEFT JOIN pg_catalog.pg_proc p ON p.proname = b.name AND p.pronamespace = 'detent'::regnamespace AND p.pronargs = 0
 WHERE p.oid IS NULL OR md5(p.prosrc) <> b.digest
 ORDER BY 1, 2;
