-- commit_check: check the holder at the beginning of a commit block, and after a COMMIT whose answer was lost.
-- takes:   job and attempt; whether to wait for a transaction that may still be marking the job
-- gives:   what was found instead of the holder, or the attempt that has committed; and this transaction's own number,
--          which the mark at the end compares. For the rest of the transaction the server ends a session that idles for
--          longer than the lease has left
-- locks:   nothing, since the block may be long; with p_settled the job
-- refuses: nothing itself
CREATE OR REPLACE FUNCTION detent.commit_check_v1(p_job_id bigint, p_attempt integer, p_settled boolean DEFAULT false)
RETURNS TABLE (instead text, committed_attempt integer, xact text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET lock_timeout = '10s' AS $$
DECLARE
  t    timestamptz := detent.clock();
  held record;
  j    detent.job;
BEGIN
  IF p_settled THEN
    PERFORM 1 FROM detent.job k WHERE k.id = p_job_id FOR UPDATE;
  END IF;
  SELECT k.state = 'running' AND k.attempt = p_attempt AND k.committed_at IS NULL AND l.expires_at > t AS holds,
         1000 * extract(epoch FROM l.expires_at - t) AS milliseconds
    INTO held
    FROM detent.job k LEFT JOIN detent.lease l ON l.id = k.lease_id
   WHERE k.id = p_job_id;
  committed_attempt := detent.committed_before(p_job_id);
  IF held.holds AND committed_attempt IS NULL THEN
    PERFORM set_config(
      'idle_in_transaction_session_timeout', ceil(least(greatest(held.milliseconds, 1), 86400000))::text, true);
  ELSE
    SELECT k.* INTO j FROM detent.job k WHERE k.id = p_job_id;
    IF j.committed_at IS NOT NULL THEN
      committed_attempt := j.attempt;
    ELSIF committed_attempt IS NULL THEN
      instead := detent.holder_lost(j, p_attempt, t);
    END IF;
  END IF;
  xact := pg_current_xact_id()::text;
  RETURN NEXT;
END $$;

-- job_commit: mark an attempt committed, and enqueue its intents.
-- takes:   job, attempt, result; the number of the transaction in which it was checked (null: none was); the intents,
--          as job_enqueue takes them, in one group
-- gives:   what was found instead of the holder, or the attempt that has committed, or the refused intent; all null
--          if the mark is set
-- locks:   the job, until the transaction ends: the mark is its last statement
-- refuses: callers that are not the holder, a second commit, a refused intent, another transaction than the one checked
CREATE OR REPLACE FUNCTION detent.job_commit_v1(
  p_job_id bigint, p_attempt integer, p_result text, p_xact text,
  p_ids bigint[] DEFAULT '{}', p_nonces bigint[] DEFAULT '{}', p_tasks text[] DEFAULT '{}',
  p_payloads text[] DEFAULT '{}', p_queues text[] DEFAULT '{default}', p_tenants text[] DEFAULT '{""}',
  p_priorities smallint[] DEFAULT '{0}', p_attempts_max integer[] DEFAULT '{4}',
  p_dead_letters boolean[] DEFAULT '{true}', p_idempotents boolean[] DEFAULT '{true}',
  p_unique_pendings boolean[] DEFAULT '{false}', p_due_ats timestamptz[] DEFAULT '{}',
  p_expires_ats timestamptz[] DEFAULT '{}', p_metadatas text[] DEFAULT '{}', p_correlation_ids text[] DEFAULT '{}',
  p_traceparents text[] DEFAULT '{}', p_run_ids bigint[] DEFAULT '{}', p_limit_keys text[] DEFAULT '{}',
  p_keys text[] DEFAULT '{}', p_fingerprints text[] DEFAULT '{}', p_key_ttls double precision[] DEFAULT '{}',
  p_groups bigint[] DEFAULT '{}', p_costs integer[] DEFAULT '{}', p_parent_ids bigint[] DEFAULT '{}'
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
    committed_attempt := detent.committed_before(p_job_id);
  END IF;
  IF committed_attempt IS NULL THEN
    instead := detent.holder_lost(j, p_attempt, t);
  END IF;
  IF NOT other_xact AND committed_attempt IS NULL AND instead IS NULL THEN
    IF cardinality(p_ids) > 0 THEN
      SELECT e.answer, e.job_id, e.cause INTO answer, job_id, cause
        FROM detent.job_enqueue_v1(
          p_ids, p_nonces, p_tasks, p_payloads, p_queues, p_tenants, p_priorities, p_attempts_max, p_dead_letters,
          p_idempotents, p_unique_pendings, p_due_ats, p_expires_ats, p_metadatas, p_correlation_ids, p_traceparents,
          p_run_ids, p_limit_keys, p_keys, p_fingerprints, p_key_ttls, p_groups,
          p_notify => false, p_costs => p_costs, p_parent_ids => p_parent_ids) e
       WHERE e.answer <> 'found' LIMIT 1;
    END IF;
    IF answer IS NULL THEN
      n := detent.job_now(j, t);
      UPDATE detent.job
         SET started_at = coalesce(started_at, n), committed_at = n, result = coalesce(p_result, result)
       WHERE id = p_job_id;
    END IF;
  END IF;
  RETURN NEXT;
END $$;

-- job_mark: mark an attempt committed, as the last statement of a commit block without intents. COMMIT follows in the same
--          trip, so a refusal is an error: its SQLSTATE says which, its DETAIL what was found.
-- takes:   job, attempt, result; the number of the transaction in which the holder was checked
-- gives:   nothing
-- locks:   the job, until the transaction ends
-- refuses: callers that are not the holder, a second commit, another transaction than the one checked
-- differs: on SQLite the blocks of a process share a transaction, and their marks are one statement
CREATE OR REPLACE FUNCTION detent.job_mark_v1(p_job_id bigint, p_attempt integer, p_result text, p_xact text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t timestamptz := detent.clock();
  j detent.job;
  committed integer;
BEGIN
  IF p_xact = pg_current_xact_id()::text THEN
    UPDATE detent.job
       SET started_at = coalesce(started_at, greatest(t, created_at, leased_at, cancel_requested_at)),
           committed_at = greatest(t, created_at, leased_at, started_at, cancel_requested_at),
           result = coalesce(p_result, result)
     WHERE id = p_job_id AND attempt = p_attempt AND state = 'running' AND committed_at IS NULL
       AND (SELECT l.expires_at FROM detent.lease l WHERE l.id = lease_id) > t
       AND detent.committed_before(p_job_id) IS NULL;
    IF FOUND THEN
      RETURN;
    END IF;
  END IF;
  IF p_xact <> pg_current_xact_id()::text THEN
    RAISE EXCEPTION 'the transaction in which the holder was checked has ended' USING ERRCODE = 'DT010';
  END IF;
  SELECT k.* INTO j FROM detent.job k WHERE k.id = p_job_id;
  committed := CASE WHEN j.committed_at IS NOT NULL THEN j.attempt ELSE detent.committed_before(p_job_id) END;
  IF committed IS NOT NULL THEN
    RAISE EXCEPTION 'the job is committed' USING ERRCODE = 'DT005', DETAIL = committed;
  END IF;
  RAISE EXCEPTION 'the attempt has lost its lease'
    USING ERRCODE = 'DT004', DETAIL = coalesce(detent.holder_lost(j, p_attempt, t), 'its lease has expired');
END $$;

-- The attempt of a job that has committed and ended; null if none has. Read from the execution rows, because damage may
-- have changed the job row.
CREATE OR REPLACE FUNCTION detent.committed_before(p_job_id bigint) RETURNS integer
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT e.attempt FROM detent.execution e WHERE e.job_id = p_job_id AND e.committed_at IS NOT NULL LIMIT 1);
END $$;
