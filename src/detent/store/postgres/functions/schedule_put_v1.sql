-- schedule_put: make a schedule, or change the one of that name.
-- takes:   its columns
-- gives:   the schedule as it stands
-- locks:   its row
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.schedule_put_v1(
  p_name text, p_tenant text, p_cron text, p_zone text, p_catch_up text, p_task text, p_payload text, p_queue text,
  p_priority smallint, p_attempts_max integer, p_dead_letter boolean, p_idempotent boolean, p_unique_pending boolean,
  p_limit_key text, p_next_at timestamptz, p_cost integer DEFAULT NULL
) RETURNS SETOF detent.schedule
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  t      timestamptz := detent.clock();
  was    detent.schedule;
  stands text;
BEGIN
  INSERT INTO detent.schedule (name, tenant, cron, zone, catch_up, task, payload, queue, priority, attempts_max,
      dead_letter, idempotent, unique_pending, limit_key, cost, next_at, changed_at)
    VALUES (p_name, p_tenant, p_cron, p_zone, p_catch_up, p_task, p_payload, p_queue, p_priority, p_attempts_max,
            p_dead_letter, p_idempotent, p_unique_pending, p_limit_key, p_cost, p_next_at, t)
    ON CONFLICT (name) DO NOTHING;
  IF FOUND THEN
    PERFORM detent.schedule_log(p_name, p_tenant, NULL, 'active', 'create', 'client', NULL, t);
  ELSE
    SELECT s.* INTO was FROM detent.schedule s WHERE s.name = p_name FOR UPDATE;
    UPDATE detent.schedule s
       SET tenant = p_tenant, cron = p_cron, zone = p_zone, catch_up = p_catch_up, task = p_task, payload = p_payload,
           queue = p_queue, priority = p_priority, attempts_max = p_attempts_max, dead_letter = p_dead_letter,
           idempotent = p_idempotent, unique_pending = p_unique_pending, limit_key = p_limit_key, cost = p_cost,
           changed_at = t, next_at = CASE WHEN s.cron = p_cron AND s.zone = p_zone THEN s.next_at ELSE p_next_at END
     WHERE s.name = p_name
       AND (s.tenant, s.cron, s.zone, s.catch_up, s.task, s.payload, s.queue, s.priority, s.attempts_max,
            s.dead_letter, s.idempotent, s.unique_pending, s.limit_key, s.cost)
           IS DISTINCT FROM
           (p_tenant, p_cron, p_zone, p_catch_up, p_task, p_payload, p_queue, p_priority, p_attempts_max,
            p_dead_letter, p_idempotent, p_unique_pending, p_limit_key, p_cost);
    IF FOUND THEN
      stands := CASE WHEN was.paused_at IS NULL THEN 'active' ELSE 'paused' END;
      PERFORM detent.schedule_log(p_name, p_tenant, stands, stands, 'change', 'client', NULL, t);
    END IF;
  END IF;
  RETURN QUERY SELECT s.* FROM detent.schedule s WHERE s.name = p_name;
END $$;
