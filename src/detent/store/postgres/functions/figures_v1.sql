-- figures: moves of jobs since the beginning of an hour, added up.
-- takes:   since when; a task, or null for all
-- gives:   a row by task, states, outcome and bucket
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.figures_v1(p_since timestamptz, p_task text) RETURNS TABLE (
  task text, from_state text, to_state text, outcome text, bucket bigint, moves bigint, held_us bigint, held_us_max bigint,
  ran_us bigint, ran_us_max bigint, waited_us bigint, waited_us_max bigint
)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
    SELECT c.task, c.from_state, c.to_state, c.outcome, c.bucket, sum(c.moves)::bigint, sum(c.held_us)::bigint, max(c.held_us_max),
           sum(c.ran_us)::bigint, max(c.ran_us_max), sum(c.waited_us)::bigint, max(c.waited_us_max)
      FROM detent.transition_counts c
     WHERE c.hour >= date_bin('1 hour', p_since, 'epoch') AND (p_task IS NULL OR c.task = p_task)
     GROUP BY c.task, c.from_state, c.to_state, c.outcome, c.bucket
     ORDER BY c.task COLLATE "C", c.from_state COLLATE "C", c.to_state COLLATE "C", c.outcome COLLATE "C", c.bucket;
END $$;
