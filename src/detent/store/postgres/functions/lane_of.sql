-- The lane of this rank and key; made where it is the first of its kind. Lanes are never deleted.
CREATE OR REPLACE FUNCTION detent.lane_of(
  p_queue text, p_task text, p_tenant text, p_priority smallint, p_limit_key text
) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  lane integer;
BEGIN
  LOOP
    SELECT l.id INTO lane FROM detent.lane l
     WHERE l.queue = p_queue AND l.task = p_task AND l.tenant = p_tenant AND l.priority = p_priority
       AND l.limit_key = coalesce(p_limit_key, '');
    IF FOUND THEN
      RETURN lane;
    END IF;
    INSERT INTO detent.lane (queue, task, tenant, priority, limit_key)
      VALUES (p_queue, p_task, p_tenant, p_priority, coalesce(p_limit_key, ''))
      ON CONFLICT DO NOTHING;
  END LOOP;
END $$;
