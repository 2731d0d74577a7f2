-- L2, E1, G4, R3: every guard is there, enabled, for the same events and columns, with its function's own body.
-- Generated from the migrations by `python -m detent.store.invariants.generate`; a test keeps it equal.
WITH wanted (name, relation, function, kind, columns, conditional) AS (VALUES
    ('job_guard', 'job', 'job_guard', 19, 'attempt,committed_at,ended,error,finished_at,lease_id,leased_at,result,spared,started_at,state', true),
    ('job_frozen', 'job', 'job_refuse', 19, 'attempts_max,created_at,dead_letter,id,idempotent,nonce,payload,run_id,task,tenant', true),
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
    ('job_effect', 'job', 'effect_guard', 19, 'effect_told_by', true)
  ),
  body (name, digest) AS (VALUES
    ('job_guard', 'c8c6683aabfc934c97a4f58f5b3c2c89'),
    ('job_refuse', '37ef4510afa6a6d36e49d37b77b5bffc'),
    ('keep', '900b723fb9e9b74454acfcff3fa0d93e'),
    ('entity_guard', 'e666f1e73af14ba9c529559722af5b99'),
    ('effect_guard', '938799720e78c9eb65533b9ca1832dd1')
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
