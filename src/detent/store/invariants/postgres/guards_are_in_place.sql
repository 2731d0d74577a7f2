-- L2, E1, G4, R3: every guard is there, enabled, for the same events and columns, with its function's own body.
-- Generated from the migrations by `python -m detent.store.invariants.generate`; a test keeps it equal.
WITH wanted (name, relation, function, kind, columns, condition) AS (VALUES
    ('job_guard', 'job', 'job_guard', 17, 'attempt,committed_at,ended,error,finished_at,lease_id,leased_at,result,spared,started_at,state', 'feb9ce2e20f65f3b18fd59121c14f29f'),
    ('job_frozen', 'job', 'job_refuse', 17, 'attempts_max,created_at,dead_letter,id,idempotent,nonce,payload,run_id,task,tenant', 'e11bb22ce61669fb7ee2f8ac99606708'),
    ('job_begins', 'job', 'job_refuse', 7, '', '5f3bdf0ec0f0714bb4f383c7bf54c737'),
    ('job_goes', 'job', 'job_refuse', 11, '', ''),
    ('job_keep_all', 'job', 'keep', 34, '', ''),
    ('execution_keep', 'execution', 'keep', 27, '', ''),
    ('execution_keep_all', 'execution', 'keep', 34, '', ''),
    ('event_keep', 'event', 'keep', 27, '', ''),
    ('event_keep_all', 'event', 'keep', 34, '', ''),
    ('transition_log_keep', 'transition_log', 'keep', 27, '', ''),
    ('transition_log_keep_all', 'transition_log', 'keep', 34, '', ''),
    ('horizon_keep', 'horizon', 'keep', 27, '', ''),
    ('horizon_keep_all', 'horizon', 'keep', 34, '', ''),
    ('migration_keep', 'migration', 'keep', 27, '', ''),
    ('migration_keep_all', 'migration', 'keep', 34, '', ''),
    ('job_effect', 'job', 'effect_guard', 17, 'effect_told_by', 'd7a55ed9cc5ab6c26f4f9a4bb26a2866'),
    ('job_moves_target', 'job', 'job_moves_target', 17, 'state', 'b09a43546551389a8a2585d489859816'),
    ('job_moved', 'job', 'job_moved', 16, 'state', ''),
    ('target_counts', 'target', 'targets_count', 16, '', ''),
    ('target_counts_new', 'target', 'targets_count', 4, '', ''),
    ('batch_run_settle', 'batch_run', 'batch_run_settle', 17, 'applied,applying,failed,outstanding,queued,revert_failed,reverting', '7298df0d46cf74a1cabb07f102a9fb8e'),
    ('batch_run_guard', 'batch_run', 'batch_run_guard', 19, 'state', '080ecb4ab810034c7e433261e07dbe86'),
    ('batch_run_frozen', 'batch_run', 'batch_run_refuse', 19, 'actor,batch,created_at,fingerprint,id,payload,tenant', '629ff1e694e1110f3d1eb5d8c9ad042a'),
    ('batch_run_begins', 'batch_run', 'batch_run_refuse', 7, '', 'd870f5a51318e1867234e0d30777fff2'),
    ('batch_run_goes', 'batch_run', 'batch_run_refuse', 11, '', ''),
    ('batch_run_keep_all', 'batch_run', 'keep', 34, '', ''),
    ('target_guard', 'target', 'target_guard', 19, 'state', 'ecdb38eeab56a2a2172b6fb3e8af55b4'),
    ('target_agrees', 'target', 'target_agrees', 16, '', ''),
    ('target_frozen', 'target', 'target_refuse', 19, 'after,apply_job_id,before,changed,created_at,n,preview_error,previewed_at,ref,revert_job_id,run_id', '8b9b1adffa0e57ddf0819a60a108e150'),
    ('target_begins', 'target', 'target_refuse', 7, '', '2009c1ea2bbe30f7b8c45ec400492946'),
    ('target_goes', 'target', 'target_refuse', 11, '', ''),
    ('target_keep_all', 'target', 'keep', 34, '', ''),
    ('job_ops_run', 'job', 'ops_run_moves', 17, 'started_at,state', '0703f7da273c3b64d4a119bf7cda68b7'),
    ('ops_run_keep', 'ops_run', 'ops_keep', 19, '', 'ab4ab2692df43ec53b8012c879d3d1ad'),
    ('ops_run_goes', 'ops_run', 'ops_keep', 11, '', ''),
    ('ops_run_keep_all', 'ops_run', 'ops_keep', 34, '', ''),
    ('ops_environment_keep', 'ops_environment', 'ops_keep', 27, '', ''),
    ('ops_environment_keep_all', 'ops_environment', 'ops_keep', 34, '', ''),
    ('pipeline_run_begins', 'pipeline_run', 'pipeline_run_guard', 7, '', '9b849197dd9cc692a785aff97d447dfa'),
    ('pipeline_run_guard', 'pipeline_run', 'pipeline_run_guard', 19, 'state', '080ecb4ab810034c7e433261e07dbe86'),
    ('pipeline_run_frozen', 'pipeline_run', 'pipeline_run_guard', 19, 'captured_at,created_at,id,is_forced,is_full,name,payload,plan_job_id,since,tenant,watermark', 'db93a1b3671d769f0612df6a34d7da39'),
    ('pipeline_run_goes', 'pipeline_run', 'pipeline_run_guard', 11, '', '0dc65e3c0ea2472d9bb46097f3616c10'),
    ('partition_begins', 'partition', 'partition_guard', 7, '', '3d24ef8942942a00b852bc12e9d60583'),
    ('partition_guard', 'partition', 'partition_guard', 19, 'last_page,next_offset,pages,state', 'bde3ed5b3de8f0a7f6fb7f0c25aa656e'),
    ('partition_frozen', 'partition', 'partition_guard', 19, 'job_id,key,n,payload,run_id', '8db86556fa078cc4fec9a8ca1079574d'),
    ('watermark_guard', 'watermark', 'watermark_guard', 31, '', ''),
    ('pipeline_follows_job', 'job', 'pipeline_follows_job', 17, 'state', '5ce286ed39766c64cb65bf6226c32c4c'),
    ('pipeline_follows_partition', 'partition', 'pipeline_follows_partition', 17, 'state', 'a241062e7767201b72a0bc7f6354853e'),
    ('pipeline_fans_in', 'pipeline_run', 'pipeline_fans_in', 17, 'parts_ended,state', '6ed727e4a8d19c052ed7b46942a32ae4'),
    ('pipeline_enqueues', 'pipeline_run', 'pipeline_enqueues', 17, 'state', '6242e328af43c74f25dc5abfc07b17f5'),
    ('job_result', 'job', 'result_guard', 17, 'result_dropped_at', 'e3fb6bd3b5a8d85d8bca47d9f85f1aab'),
    ('identity_begins', 'identity', 'identity_grows', 7, '', ''),
    ('identity_keep', 'identity', 'keep', 27, '', ''),
    ('identity_keep_all', 'identity', 'keep', 34, '', ''),
    ('batch_run_mismatches', 'batch_run', 'batch_run_mismatches', 17, 'mismatches,reconciled_at', 'b310fa7c74666d61d50f180c554dc4b2'),
    ('job_counted', 'job', 'job_counted', 17, 'finished_at', '7e7e8c007a01ec1b5ee0ec96fba464cd')
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
    ('batch_run_facts', '7ae4489d44a295f3c1340121e991f026'),
    ('batch_run_mismatches', 'b5a8f160b19f6d6386173daedfdfb9d7'),
    ('job_counted', '374d003cdf3f9e4c76321b131859dd0e'),
    ('micros_between', '6131d7e7b7fd6adc7e18561a3e3eca1c'),
    ('duration_bucket', 'd3bc0e60e64b85baaaade3956806b3b5')
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
    OR w.condition <> CASE WHEN t.tgqual IS NULL THEN '' ELSE coalesce(md5(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(lower(substring(pg_get_triggerdef(t.oid) from ' WHEN \((.*)\) EXECUTE FUNCTION')), '::(text|bigint|integer|smallint|boolean|double precision|timestamp with time zone|numeric|interval|jsonb)(\[\])?', '', 'g'), '= any \(array\[', ' in ', 'g'), '<> all \(array\[', ' not in ', 'g'), ' using btree ', '', 'g'), ' not valid$', '', 'g'), '[\s()\[\]]', '', 'g')), '') END
    OR w.columns <> coalesce((SELECT string_agg(a.attname, ',' ORDER BY a.attname COLLATE "C")
                                FROM pg_catalog.pg_attribute a
                               WHERE a.attrelid = t.tgrelid AND a.attnum = ANY (t.tgattr)), '')
UNION ALL
SELECT 'function', b.name, CASE WHEN p.oid IS NULL THEN 'it is missing' ELSE 'its body was changed' END
  FROM body b
  LEFT JOIN pg_catalog.pg_proc p ON p.proname = b.name AND p.pronamespace = 'detent'::regnamespace
 WHERE p.oid IS NULL OR md5(p.prosrc) <> b.digest
 ORDER BY 1, 2;
