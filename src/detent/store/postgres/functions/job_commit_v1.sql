-- job_commit: mark an attempt committed, and enqueue its intents.
-- takes:   job, attempt, result; the number of the transaction in which it was checked (null: none was); the intents,
--          as job_enqueue takes them, in one group
-- gives:   what was found instead of the holder, or the attempt that has committed, or the refused intent; all null
--          where the mark is set
-- locks:   the job, until the transaction ends: the mark is its last statement
-- refuses: whoever is not the holder, a second commit, a refused intent, another transaction than the one checked
CREATE OR REPLACE FUNCTION detent.job_commit_v1(
  p_job_id bigint, p_attempt integer, p_result text, p_xact text,
  p_ids bigint[], p_nonces bigint[], p_tasks text[], p_payloads text[], p_queues text[], p_tenants text[],
  p_priorities smallint[], p_attempts_max integer[], p_dead_letters boolean[], p_idempotents boolean[],
  p_unique_pendings boolean[], p_due_ats timestamptz[], p_expires_ats timestamptz[], p_metadatas text[],
  p_correlation_ids text[], p_traceparents text[], p_run_ids bigint[], p_limit_keys text[], p_keys text[],
  p_fingerprints text[], p_key_ttls double precision[], p_groups bigint[]
) RETURNS TABLE (instead text, committed_attempt integer, other_xact boolean, answer text, job_id bigint, cause integer)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  t timestamptz := detent.clock();
  j detent.job;
  n timestamptz;
BEGIN
  other_xact := coalesce(p_xact <> pg_current_xact_id()::text, false);
  SELECT k.* INTO j FROM detent.job k WHERE k.id = p_job_id FOR UPDATE;
  IF j.committed_at IS NOT NULL THEN
    committed_attempt := j.attempt;
  ELSE
    instead := detent.holder_lost(j, p_attempt, t);
  END IF;
  IF NOT other_xact AND committed_attempt IS NULL AND instead IS NULL THEN
    SELECT e.answer, e.job_id, e.cause INTO answer, job_id, cause
      FROM detent.job_enqueue_v1(
        p_ids, p_nonces, p_tasks, p_payloads, p_queues, p_tenants, p_priorities, p_attempts_max, p_dead_letters,
        p_idempotents, p_unique_pendings, p_due_ats, p_expires_ats, p_metadatas, p_correlation_ids, p_traceparents,
        p_run_ids, p_limit_keys, p_keys, p_fingerprints, p_key_ttls, p_groups,
        p_notify => false) e
     WHERE e.answer <> 'found' LIMIT 1;
    IF answer IS NULL THEN
      n := detent.job_now(j, t);
      UPDATE detent.job
         SET started_at = coalesce(started_at, n), committed_at = n, result = coalesce(p_result, result)
       WHERE id = p_job_id;
    END IF;
  END IF;
  RETURN NEXT;
END $$;
