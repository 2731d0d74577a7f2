-- workflow_spawn: spawn children: everything but the jobs, which the caller enqueues in the same transaction.
-- takes:   the step as step_record_one does, with its version; the first id of the group and its size, which is an upper bound
--          until the last portion; whether this is the last portion, and whether the children are detached; the place of this
--          portion in the group, and how many children it has
-- gives:   first id and size of the group on record; `known` if its step is on record; `cancel` if the
--          parent is to be cancelled; `deep` if it is on the lowest level
--          that a tree may have; `conflict` if the group has another size, with the tenant; the ids of children of this portion that are there already; or what was found instead of the holder
-- locks:   the parent, until the transaction ends: a cancel comes before all of its children or after them
-- refuses: callers that are not the holder, a committed attempt
CREATE OR REPLACE FUNCTION detent.workflow_spawn_v1(
  p_job_id bigint, p_attempt integer, p_version integer, p_generation integer, p_path text, p_seq integer, p_kind text,
  p_value text, p_ran_us bigint, p_scope text, p_fingerprint text, p_flags integer, p_error text,
  p_first_id bigint, p_total integer, p_closed boolean, p_detached boolean, p_from integer, p_count integer
) RETURNS TABLE (answer text, first_id bigint, total integer, there bigint[], instead text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  t     timestamptz := detent.clock();
  n     timestamptz;
  known detent.workflow_step;
  j     detent.job;
BEGIN
  SELECT k.* INTO j FROM detent.job k WHERE k.id = p_job_id FOR UPDATE;
  instead := detent.step_refused(j, p_attempt, t);
  IF instead IS NOT NULL THEN
    RETURN NEXT;
    RETURN;
  END IF;
  SELECT g.first_id, g.total INTO first_id, total FROM detent.child_group g
   WHERE g.parent_id = p_job_id AND g.generation = p_generation AND g.path = p_path;
  IF EXISTS (SELECT 1 FROM detent.workflow_step s
              WHERE s.job_id = p_job_id AND s.generation = p_generation AND s.path = p_path) THEN
    answer := 'known';
    first_id := coalesce(first_id, p_first_id);
    total := coalesce(total, p_total);
  ELSIF j.cancel_requested_at IS NOT NULL THEN
    answer := 'cancel';
  ELSIF coalesce((SELECT f.depth FROM detent.workflow f WHERE f.job_id = p_job_id),
                 (SELECT p.depth + 1 FROM detent.workflow p WHERE p.job_id = j.parent_id), 0) >= 16 THEN
    -- Its first attempt does not know how deep it is: that is written with its first record.
    answer := 'deep';
  ELSIF total <> p_total AND (NOT p_closed OR p_total > total OR EXISTS (
          SELECT 1 FROM detent.job k
           WHERE k.parent_id = p_job_id AND k.id >= workflow_spawn_v1.first_id + p_total
             AND k.id < workflow_spawn_v1.first_id + workflow_spawn_v1.total)) THEN
    answer := 'conflict';
    instead := j.tenant;
  ELSE
    n := detent.job_now(j, t);
    IF detent.workflow_begin(p_job_id, p_version, p_generation) <> p_generation THEN
      instead := 'generation ' || p_generation || ' is not current';
      RETURN NEXT;
      RETURN;
    END IF;
    IF first_id IS NULL THEN
      first_id := p_first_id;
      total := p_total;
      IF NOT p_detached THEN
        INSERT INTO detent.child_group (parent_id, generation, path, first_id, total, closed)
          VALUES (p_job_id, p_generation, p_path, p_first_id, p_total, p_closed);
      END IF;
    ELSIF p_closed THEN
      total := p_total;
      UPDATE detent.child_group g SET closed = true, total = p_total
       WHERE g.parent_id = p_job_id AND g.generation = p_generation AND g.path = p_path;
    END IF;
    IF p_closed THEN
      PERFORM detent.step_put(
        detent.step_sent(p_job_id, p_attempt, p_generation, p_path, p_seq, p_kind, p_value, p_ran_us, p_scope, p_fingerprint,
                         p_flags, p_error, n),
        p_version);
    END IF;
    there := ARRAY(SELECT k.id FROM detent.job k
                    WHERE k.parent_id = p_job_id AND k.id >= workflow_spawn_v1.first_id + p_from
                      AND k.id < workflow_spawn_v1.first_id + p_from + p_count);
  END IF;
  RETURN NEXT;
END $$;
