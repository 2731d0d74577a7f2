-- job_move: put pending jobs into another queue, or give them another priority.
-- takes:   jobs, queue and priority (null: as it is), who, why, what the record says about where they went
-- gives:   one row per item: the state it was found in, null where there is no such job; whether it was moved
-- locks:   the jobs, by id, each with its ready or waiting row first
-- refuses: what is not pending
CREATE OR REPLACE FUNCTION detent.job_move_v1(
  p_ids bigint[], p_queue text, p_priority smallint, p_actor text, p_reason text, p_metadata text
) RETURNS TABLE (ord integer, from_state text, moved boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  t    timestamptz;
  item record;
  j    detent.job;
  old  bigint;
  new  bigint;
BEGIN
  FOR item IN SELECT u.* FROM unnest(p_ids) WITH ORDINALITY AS u (id, ord) ORDER BY u.id, u.ord LOOP
    ord := item.ord;
    j := detent.job_lock(item.id);
    t := detent.clock();  -- after the lock, so that it is not earlier than a move that this one waited for
    from_state := j.state;
    moved := coalesce(
      j.state = 'pending' AND (j.queue <> coalesce(p_queue, j.queue) OR j.priority <> coalesce(p_priority, j.priority)),
      false);
    IF moved THEN
      INSERT INTO detent.transition_log (tenant, entity, entity_id, job_id, attempt, from_state, to_state, trigger, actor,
          reason, metadata, correlation_id, at)
        VALUES (j.tenant, 'job', j.id::text, j.id, j.attempt, 'pending', 'pending', 'move', p_actor, p_reason, p_metadata,
                j.correlation_id, detent.job_now(j, t));
      old := detent.lane_of(j.queue, j.task, j.tenant, j.priority, j.limit_key);
      j.queue := coalesce(p_queue, j.queue);
      j.priority := coalesce(p_priority, j.priority);
      new := detent.lane_of(j.queue, j.task, j.tenant, j.priority, j.limit_key);
      UPDATE detent.waiting w SET lane_id = new, priority = j.priority WHERE w.job_id = j.id;
      IF NOT FOUND THEN
        UPDATE detent.ready r SET lane_id = new WHERE r.lane_id = old AND r.ready_at = j.due_at AND r.job_id = j.id;
        IF NOT FOUND THEN
          PERFORM detent.job_misplaced(j.id);
        END IF;
      END IF;
      UPDATE detent.job SET queue = j.queue, priority = j.priority WHERE id = j.id;
    END IF;
    RETURN NEXT;
  END LOOP;
  PERFORM detent.wake_waiters(false);
END $$;
