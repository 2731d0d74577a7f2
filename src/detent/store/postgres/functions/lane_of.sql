-- The lane of this rank; made where it is the first of its kind. Lanes are never deleted.
CREATE OR REPLACE FUNCTION detent.lane_of(p_queue text, p_task text, p_tenant text, p_priority smallint) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  lane integer;
BEGIN
  LOOP
    SELECT l.id INTO lane FROM detent.lane l
     WHERE l.queue = p_queue AND l.task = p_task AND l.tenant = p_tenant AND l.priority = p_priority;
    IF FOUND THEN
      RETURN lane;
    END IF;
    INSERT INTO detent.lane (queue, task, tenant, priority) VALUES (p_queue, p_task, p_tenant, p_priority)
      ON CONFLICT DO NOTHING;
  END LOOP;
END $$;
