-- state_as_of: the state of an entity at a past moment, folded from the record.
-- takes:   the kind of entity, its id, the moment
-- gives:   the state; null before its beginning
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.state_as_of_v1(p_entity text, p_entity_id text, p_at timestamptz) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN (SELECT v.to_state FROM detent.transitions_v1(p_entity, p_entity_id) v
           WHERE v.entity = p_entity AND v.at <= p_at
           ORDER BY v.attempt DESC, v.rank DESC, v.n DESC LIMIT 1);
END $$;
