-- lease_renew: extend leases, put what has begun in progress, and tell what is to be stopped.
-- takes:   leases, seconds, the jobs under them whose functions were called, and how many microseconds after the claim
-- gives:   one row for each lease that is still there, with the jobs that are to be cancelled and their attempts
-- locks:   the lease rows, by id; of the jobs only those that nobody else holds
-- refuses: nothing: a lease that was reaped is simply not among the rows
CREATE OR REPLACE FUNCTION detent.lease_renew_v3(
  p_lease_ids bigint[], p_lease double precision, p_begun bigint[], p_begun_after bigint[]
) RETURNS TABLE (lease_id bigint, cancel_requested bigint[], cancel_attempts integer[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  t    timestamptz := detent.clock();
  held bigint[];
  jobs bigint[];
BEGIN
  PERFORM 1 FROM detent.lease l WHERE l.id = ANY (p_lease_ids) ORDER BY l.id FOR UPDATE;
  WITH renewed AS (
    UPDATE detent.lease SET expires_at = t + make_interval(secs => p_lease) WHERE id = ANY (p_lease_ids)
    RETURNING id, job_ids
  )
  SELECT (SELECT array_agg(r.id) FROM renewed r),
         (SELECT array_agg(u.id) FROM renewed r CROSS JOIN LATERAL unnest(r.job_ids) AS u (id))
    INTO held, jobs;
  IF cardinality(p_begun) > 0 THEN
    UPDATE detent.job k
       SET started_at = greatest(k.leased_at, least(
             greatest(t, k.created_at, k.cancel_requested_at), k.leased_at + u.after * interval '1 microsecond'))
      FROM unnest(p_begun, p_begun_after) AS u (id, after)
     WHERE k.id = u.id AND k.id = ANY (ARRAY(
       SELECT j.id FROM detent.job j
        WHERE j.id = ANY (p_begun) AND j.lease_id = ANY (held) AND j.state = 'running' AND j.started_at IS NULL
          FOR UPDATE SKIP LOCKED));
  END IF;
  RETURN QUERY
    SELECT u.id, coalesce(array_agg(j.id ORDER BY j.id) FILTER (WHERE j.id IS NOT NULL), '{}'),
           coalesce(array_agg(j.attempt ORDER BY j.id) FILTER (WHERE j.id IS NOT NULL), '{}')
      FROM unnest(held) AS u (id)
      LEFT JOIN (
        SELECT k.id, k.attempt, k.lease_id FROM detent.job k
         WHERE k.id = ANY (jobs) AND k.state = 'running' AND k.cancel_requested_at IS NOT NULL
      ) j ON j.lease_id = u.id
     GROUP BY u.id;
END $$;
