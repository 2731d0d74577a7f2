-- The lane of this rank and key; made if it is the first of its kind, with its group. Lanes are never deleted.
CREATE OR REPLACE FUNCTION detent.lane_of(
  p_queue text, p_task text, p_tenant text, p_priority smallint, p_limit_key text
) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
  lane  bigint;
  range integer;
BEGIN
  LOOP
    SELECT l.id INTO lane FROM detent.lane l
     WHERE l.queue = p_queue AND l.task = p_task AND l.tenant = p_tenant AND l.priority = p_priority
       AND l.limit_key = coalesce(p_limit_key, '');
    IF FOUND THEN
      RETURN lane;
    END IF;
    SELECT g.id INTO range FROM detent.lane_group g WHERE g.queue = p_queue AND g.task = p_task;
    IF FOUND THEN
      INSERT INTO detent.lane (id, queue, task, tenant, priority, limit_key)
        VALUES ((range::bigint << 32) + nextval('detent.lane_id_seq'), p_queue, p_task, p_tenant, p_priority,
                coalesce(p_limit_key, ''))
        ON CONFLICT DO NOTHING;
    ELSE
      INSERT INTO detent.lane_group (queue, task) VALUES (p_queue, p_task) ON CONFLICT DO NOTHING;
    END IF;
  END LOOP;
END $$;
