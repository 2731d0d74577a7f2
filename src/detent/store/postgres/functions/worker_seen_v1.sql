-- worker_seen: a worker lives.
-- takes:   who it is, where it is, what it knows (names in JSON arrays), how much it can hold and holds, whether it stops
-- gives:   nothing
-- locks:   once a second the row of the watch; its own row; rows of workers long gone are passed over where others hold them
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.worker_seen_v1(
  p_id bigint, p_name text, p_host text, p_pid integer, p_queues text, p_tasks text, p_slots integer, p_running integer,
  p_stopping boolean
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
DECLARE
  t timestamptz := detent.clock();
BEGIN
  UPDATE detent.watch w
     SET gap_from = CASE WHEN w.watched_at < t - interval '5 seconds' THEN w.watched_at ELSE w.gap_from END,
         gap_to = CASE WHEN w.watched_at < t - interval '5 seconds' THEN t ELSE w.gap_to END, watched_at = t
   WHERE (w.watched_at BETWEEN t - interval '1 second' AND t) IS NOT TRUE;
  UPDATE detent.worker
     SET name = p_name, host = p_host, pid = p_pid, queues = p_queues, tasks = p_tasks, slots = p_slots,
         running = p_running, stopping = p_stopping, seen_at = greatest(seen_at, t)
   WHERE id = p_id;
  IF NOT FOUND THEN
    INSERT INTO detent.worker (id, name, host, pid, queues, tasks, slots, running, stopping, started_at, seen_at)
      VALUES (p_id, p_name, p_host, p_pid, p_queues, p_tasks, p_slots, p_running, p_stopping, t, t)
      ON CONFLICT (id) DO NOTHING;
    DELETE FROM detent.worker WHERE id = ANY (ARRAY(
      SELECT w.id FROM detent.worker w WHERE w.seen_at < t - interval '1 day' FOR UPDATE SKIP LOCKED));
  END IF;
END $$;
