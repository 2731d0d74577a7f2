-- partition_list: the partitions of a run, by number.
-- takes:   the run, a state (null is any), the number to go on after, at most how many
-- gives:   their rows
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.partition_list_v1(p_run_id bigint, p_state text, p_after_n integer, p_limit integer)
RETURNS SETOF detent.partition
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
    SELECT p.* FROM detent.partition p
     WHERE p.run_id = p_run_id AND p.n > p_after_n AND (p_state IS NULL OR p.state = p_state) ORDER BY p.n LIMIT p_limit;
END $$;
