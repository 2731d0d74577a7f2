-- The environment of that name in that project; made where it is the first time that somebody names it.
CREATE OR REPLACE FUNCTION detent.ops_environment(p_project_id text, p_name text, t timestamptz) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
  found_id bigint;
BEGIN
  LOOP
    SELECT e.id INTO found_id FROM detent.ops_environment e WHERE e.project_id = p_project_id AND e.name = p_name;
    IF FOUND THEN
      RETURN found_id;
    END IF;
    INSERT INTO detent.ops_environment (id, project_id, name, created_at)
      VALUES (detent.ids_reserve_v1(1), p_project_id, p_name, t)
      ON CONFLICT ON CONSTRAINT ops_environment_of_project DO NOTHING;
  END LOOP;
END $$;
