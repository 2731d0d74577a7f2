-- batch_figures: requests to apply and batch runs that ended, since the beginning of an hour.
-- takes:   since when
-- gives:   a row by batch and bucket of how long the runs took
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.batch_figures_v1(p_since timestamptz) RETURNS TABLE (
  batch text, bucket bigint, applies bigint, runs bigint, applied bigint, failed bigint, ran_us bigint, ran_us_max bigint
)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
    SELECT c.batch, c.bucket, sum(c.applies)::bigint, sum(c.runs)::bigint, sum(c.applied)::bigint, sum(c.failed)::bigint,
           sum(c.ran_us)::bigint, max(c.ran_us)
      FROM detent.batch_counts c
     WHERE c.at >= date_bin('1 hour', p_since, 'epoch')
     GROUP BY c.batch, c.bucket ORDER BY c.batch COLLATE "C", c.bucket;
END $$;
