-- transitions: every change of one entity, in order.
-- takes:   the kind of entity and its id
-- gives:   rows of the view transition
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.transitions_v1(p_entity text, p_entity_id text) RETURNS SETOF detent.transition
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
DECLARE
  of_job bigint := CASE WHEN p_entity IN ('job', 'execution') AND split_part(p_entity_id, '/', 1) ~ '^[0-9]{1,18}$'
                        THEN split_part(p_entity_id, '/', 1)::bigint END;
BEGIN
  IF p_entity = 'target' THEN
    IF p_entity_id ~ '^[0-9]{1,18}/[0-9]{1,9}$' THEN
      RETURN QUERY
        SELECT v.tenant, v.entity, v.job_id, v.entity_id, v.from_state, v.to_state, v.trigger, v.at, v.actor, v.reason, v.metadata,
               v.correlation_id, v.forced, v.attempt, v.rank, v.n
          FROM detent.target_transition v
         WHERE v.run_id = split_part(p_entity_id, '/', 1)::bigint AND v.target_n = split_part(p_entity_id, '/', 2)::integer
         ORDER BY v.attempt, v.rank, v.n;
    END IF;
    RETURN;
  END IF;
  IF of_job IS NOT NULL THEN
    RETURN QUERY
      SELECT v.* FROM detent.transition v
       WHERE v.job_id = of_job AND v.entity = p_entity AND v.entity_id = p_entity_id
       ORDER BY v.attempt, v.rank, v.n;
  ELSE
    RETURN QUERY
      SELECT v.* FROM detent.transition v
       WHERE v.job_id IS NULL AND v.entity = p_entity AND v.entity_id = p_entity_id
       ORDER BY v.attempt, v.rank, v.n;
  END IF;
END $$;
