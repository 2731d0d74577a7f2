-- limit_remove: take a limit away, with the keys that have its bounds.
-- takes:   the key, who, why
-- gives:   how many jobs wait or run under it, and then it stays; 0 where it is gone; null where there is no such limit
-- locks:   the limit's row, and those of the keys that have its bounds
-- refuses: a limit that is not there; one that jobs need
CREATE OR REPLACE FUNCTION detent.limit_remove_v1(p_key text, p_actor text, p_reason text DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  t       timestamptz := detent.clock();
  l       detent.rate_limit;
  keys    text[];
  lanes   bigint[];
  needing bigint;
BEGIN
  -- In the order of a claim: limits of tasks and queues before those of keys.
  PERFORM 1 FROM detent.rate_limit k WHERE k.key = p_key FOR UPDATE;
  PERFORM 1 FROM detent.rate_limit k WHERE k.template = p_key ORDER BY k.key FOR UPDATE;
  SELECT k.* INTO l FROM detent.rate_limit k WHERE k.key = p_key;
  IF l.key IS NULL THEN
    RETURN NULL;
  END IF;
  keys := ARRAY(SELECT k.key FROM detent.rate_limit k WHERE k.key = p_key OR k.template = p_key);
  -- A key of many is needed by the jobs that have it; any other limit by those of its tasks and queues.
  lanes := ARRAY(
    SELECT n.id FROM detent.lane n
     WHERE CASE WHEN l.template IS NOT NULL THEN n.limit_key = p_key
                ELSE EXISTS (SELECT 1 FROM detent.limit_member m WHERE m.limit_key = p_key
                              AND (m.kind = 'task' AND m.name = n.task OR m.kind = 'queue' AND m.name = n.queue)) END);
  needing := (SELECT count(*) FROM detent.ready r WHERE r.lane_id = ANY (lanes))
           + (SELECT count(*) FROM detent.waiting w WHERE w.lane_id = ANY (lanes))
           + (SELECT count(DISTINCT s.job_id) FROM detent.limit_slot s
                JOIN detent.job j ON j.id = s.job_id AND j.attempt = s.attempt AND j.state = 'running'
               WHERE s.limit_key = ANY (keys));
  IF needing > 0 THEN
    RETURN needing;
  END IF;
  PERFORM detent.limit_log(p_key, CASE WHEN l.held_at IS NOT NULL THEN 'paused' ELSE 'closed' END, 'removed', 'remove',
                           p_actor, p_reason, t);
  DELETE FROM detent.limit_slot s WHERE s.limit_key = ANY (keys);
  DELETE FROM detent.limit_member m WHERE m.limit_key = p_key;
  DELETE FROM detent.rate_limit k WHERE k.key = ANY (keys);
  RETURN 0;
END $$;
