-- job_get: jobs as they stand.
-- takes:   ids
-- gives:   those that are there
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.job_get_v1(p_ids bigint[]) RETURNS SETOF detent.job
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY SELECT j.* FROM detent.job j WHERE j.id = ANY (p_ids);
END $$;

-- job_list: jobs that fit a search, the newest first by creation.
-- takes:   state, task, queue, tenant, key (of the tenant, else of none), correlation id, run, worker, a part of an error,
--          names and values of metadata (each value: a JSON array of those that fit), the earliest time of creation (null is
--          any for each); the place to continue after; how many jobs to give, and how many to read
-- gives:   jobs that fit; and, if it stopped looking before the end, the last job it looked at, which does not fit
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.job_list_v2(
  p_state text, p_task text, p_queue text, p_tenant text, p_key text, p_correlation_id text, p_run_id bigint, p_worker text,
  p_error text, p_names text[], p_values text[], p_since timestamptz, p_after_at timestamptz, p_after_id bigint,
  p_limit integer, p_looks integer
) RETURNS TABLE (fits boolean, job detent.job)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  step   integer := p_limit;  -- without other filters the first portion is the page
  found  integer := 0;
  looked integer := 0;
  more   integer;
  few    bigint[];
  few_max integer := least(p_looks, 20000);
  portion integer := 1;
  ids    bigint[];
BEGIN
  IF p_key IS NOT NULL THEN
    few := ARRAY(SELECT k.job_id FROM detent.job_key k WHERE k.tenant = coalesce(p_tenant, '') AND k.key = p_key);
  END IF;
  LOOP
    -- If the newest jobs do not fill the page: the jobs of a state that has rows of its own, all at once, if they are few.
    IF few IS NULL AND p_run_id IS NULL AND p_correlation_id IS NULL AND portion = 3 THEN
      few := CASE p_state
        WHEN 'running' THEN ARRAY(
          SELECT u.id FROM detent.lease l CROSS JOIN LATERAL unnest(l.job_ids) AS u (id) LIMIT few_max + 1)
        WHEN 'quarantined' THEN ARRAY(SELECT d.job_id FROM detent.dead d LIMIT few_max + 1)
        WHEN 'failed' THEN ARRAY(SELECT u.job_id FROM detent.unsuccessful u WHERE u.state = 'failed' LIMIT few_max + 1)
        WHEN 'cancelled' THEN ARRAY(SELECT u.job_id FROM detent.unsuccessful u WHERE u.state = 'cancelled' LIMIT few_max + 1)
        WHEN 'pending' THEN ARRAY(
          SELECT u.job_id FROM (SELECT r.job_id FROM detent.ready r UNION ALL SELECT w.job_id FROM detent.waiting w) u
           LIMIT few_max + 1) END;
      IF cardinality(few) > few_max THEN
        few := NULL;
      END IF;
    END IF;
    IF few IS NOT NULL THEN
      ids := few;
    ELSIF p_run_id IS NOT NULL THEN
      ids := ARRAY(SELECT j.id FROM detent.job j
                    WHERE j.run_id = p_run_id AND (j.created_at, j.id) < (p_after_at, p_after_id) AND j.created_at >= p_since
                    ORDER BY j.created_at DESC, j.id DESC LIMIT step);
    ELSIF p_correlation_id IS NOT NULL THEN
      ids := ARRAY(SELECT j.id FROM detent.job j
                    WHERE j.correlation_id = p_correlation_id AND (j.created_at, j.id) < (p_after_at, p_after_id)
                      AND j.created_at >= p_since
                    ORDER BY j.created_at DESC, j.id DESC LIMIT step);
    ELSE
      -- Spans of one time may overlap, so an id may come twice: its job is given once all the same.
      ids := ARRAY(SELECT j.id
                     FROM detent.job_span s
                    CROSS JOIN LATERAL (
                      SELECT k.id FROM detent.job k
                       WHERE k.id BETWEEN s.first_id AND s.last_id AND k.created_at = s.created_at
                         AND (k.created_at, k.id) < (p_after_at, p_after_id) OFFSET 0) j
                    WHERE (s.created_at, s.block) <= (p_after_at, p_after_id >> 10) AND s.created_at >= p_since
                    ORDER BY s.created_at DESC, s.block DESC, j.id DESC LIMIT step);
    END IF;
    RETURN QUERY
      SELECT true, j FROM detent.job j
       WHERE j.id = ANY (ids) AND (j.created_at, j.id) < (p_after_at, p_after_id) AND j.created_at >= p_since
         AND (p_state IS NULL OR j.state = p_state) AND (p_task IS NULL OR j.task = p_task)
         AND (p_queue IS NULL OR j.queue = p_queue) AND (p_tenant IS NULL OR j.tenant = p_tenant)
         AND (p_correlation_id IS NULL OR j.correlation_id = p_correlation_id) AND (p_run_id IS NULL OR j.run_id = p_run_id)
         AND (p_worker IS NULL
              OR EXISTS (SELECT 1 FROM detent.execution e WHERE e.job_id = j.id AND e.worker = p_worker)
              OR EXISTS (SELECT 1 FROM detent.lease l WHERE l.id = j.lease_id AND j.state = 'running' AND l.worker = p_worker))
         AND (p_error IS NULL OR position(p_error IN coalesce(j.error, '')) > 0
              OR EXISTS (SELECT 1 FROM detent.execution e WHERE e.job_id = j.id AND position(p_error IN coalesce(e.error, '')) > 0))
         AND (p_names IS NULL OR detent.metadata_fits(j.metadata, p_names, p_values))
       ORDER BY j.created_at DESC, j.id DESC LIMIT p_limit - found;
    GET DIAGNOSTICS more = ROW_COUNT;
    found := found + more;
    looked := looked + cardinality(ids);
    EXIT WHEN few IS NOT NULL OR found >= p_limit OR cardinality(ids) < step;
    IF looked >= p_looks THEN
      RETURN QUERY SELECT false, j FROM detent.job j WHERE j.id = ids[step];
      EXIT;
    END IF;
    SELECT j.created_at, j.id INTO p_after_at, p_after_id FROM detent.job j WHERE j.id = ids[step];
    step := greatest(p_limit, 1000);
    portion := portion + 1;
  END LOOP;
END $$;

-- job_details: what a list of jobs shows beside their rows.
-- takes:   ids
-- gives:   for each that is there: its key, the worker that holds it or held it last, and its progress: the payload of the
--          newest of its last 100 events in the current attempt that reports one; and its status: the payload of the newest of
--          its events with the message status
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.job_details_v1(p_ids bigint[])
RETURNS TABLE (job_id bigint, key text, worker text, progress text, status text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    SELECT j.id, (SELECT k.key FROM detent.job_key k WHERE k.job_id = j.id ORDER BY k.key COLLATE "C" LIMIT 1),
           CASE WHEN j.state = 'running' THEN (SELECT l.worker FROM detent.lease l WHERE l.id = j.lease_id)
                ELSE (SELECT e.worker FROM detent.execution e WHERE e.job_id = j.id ORDER BY e.attempt DESC LIMIT 1) END,
           (SELECT p.payload FROM (SELECT e.payload, e.seq FROM detent.event e
                                    WHERE e.job_id = j.id AND e.attempt = j.attempt ORDER BY e.seq DESC LIMIT 100) p
             WHERE starts_with(p.payload, '{"done":') ORDER BY p.seq DESC LIMIT 1),
           (SELECT e.payload FROM detent.event e WHERE e.job_id = j.id AND e.message = 'status' ORDER BY e.seq DESC LIMIT 1)
      FROM detent.job j WHERE j.id = ANY (p_ids);
END $$;

-- job_executions: every attempt of a job, ended or in flight, in order.
-- takes:   the job
-- gives:   rows of the view executions; the one in flight is found from the job, not through all leases
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.job_executions_v1(p_job_id bigint) RETURNS SETOF detent.executions
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
    SELECT e.job_id, e.attempt, CASE WHEN e.outcome = 'done' THEN 'done' ELSE 'aborted' END, e.worker, e.leased_at,
           e.started_at, e.committed_at, e.done_at, e.aborted_at, e.outcome, e.error, e.next_state, e.next_due_at,
           e.counted, NULL::bigint, NULL::timestamptz, e.suspect
      FROM detent.execution e WHERE e.job_id = p_job_id
    UNION ALL
    SELECT j.id, j.attempt,
           CASE WHEN j.committed_at IS NOT NULL THEN 'committed' WHEN j.started_at IS NOT NULL THEN 'in_progress'
                ELSE 'leased' END,
           l.worker, j.leased_at, j.started_at, j.committed_at, NULL, NULL, NULL, NULL, NULL, NULL, NULL, l.id, l.expires_at,
           NULL
      FROM detent.job j JOIN detent.lease l ON l.id = j.lease_id
     WHERE j.id = p_job_id AND j.state = 'running'
     ORDER BY 2;
END $$;

-- job_events: the lines of a job.
-- takes:   the job, the line to continue after, how many
-- gives:   lines in order
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.job_events_v1(p_job_id bigint, p_after_seq integer, p_limit integer)
RETURNS SETOF detent.event
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
    SELECT e.* FROM detent.event e WHERE e.job_id = p_job_id AND e.seq > p_after_seq ORDER BY e.seq LIMIT p_limit;
END $$;

-- Whether metadata has each of these members at its top, with one of the values of its JSON array. Text that is no JSON fits nothing.
CREATE OR REPLACE FUNCTION detent.metadata_fits(p_metadata text, p_names text[], p_values text[]) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN p_metadata IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM unnest(p_names, p_values) AS wanted (name, allowed)
     WHERE NOT coalesce(jsonb_typeof(p_metadata::jsonb -> wanted.name) NOT IN ('array', 'object')
                        AND wanted.allowed::jsonb @> (p_metadata::jsonb -> wanted.name), false));
EXCEPTION WHEN data_exception THEN
  RETURN false;
END $$;

-- counts: jobs by tenant, queue and state, now.
-- takes:   a tenant, or null for all
-- gives:   one row per tenant, queue and state that occurs
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.counts_v1(p_tenant text) RETURNS TABLE (tenant text, queue text, state text, jobs bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
    SELECT c.tenant, c.queue, c.state, sum(c.jobs)::bigint FROM detent.job_counts c
     WHERE p_tenant IS NULL OR c.tenant = p_tenant
     GROUP BY c.tenant, c.queue, c.state ORDER BY c.tenant COLLATE "C", c.queue COLLATE "C", c.state COLLATE "C";
END $$;

-- counts_as_of: jobs by tenant, queue and state at a past moment, folded from the record.
-- takes:   the moment
-- gives:   one row per tenant, queue and state that occurred
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.counts_as_of_v1(p_at timestamptz)
RETURNS TABLE (tenant text, queue text, state text, jobs bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
    WITH then_was AS (
      SELECT DISTINCT ON (v.job_id) v.job_id, v.to_state FROM detent.transition v
       WHERE v.entity = 'job' AND v.at <= p_at
       ORDER BY v.job_id, v.attempt DESC, v.rank DESC, v.n DESC
    )
    SELECT j.tenant, j.queue, w.to_state, count(*) FROM then_was w JOIN detent.job j ON j.id = w.job_id
     GROUP BY 1, 2, 3 ORDER BY j.tenant COLLATE "C", j.queue COLLATE "C", w.to_state COLLATE "C";
END $$;

-- job_count: how many jobs fit a filter.
-- takes:   state, task, queue, tenant (null is any)
-- gives:   how many
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.job_count_v1(p_state text, p_task text, p_queue text, p_tenant text) RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  IF p_tenant IS NULL THEN
    RETURN (SELECT coalesce(sum(c.jobs), 0)::bigint FROM detent.queue_counts c
             WHERE (p_state IS NULL OR c.state = p_state) AND (p_task IS NULL OR c.task = p_task)
               AND (p_queue IS NULL OR c.queue = p_queue));
  END IF;
  RETURN (SELECT coalesce(sum(c.jobs), 0)::bigint FROM detent.job_counts c
           WHERE (p_state IS NULL OR c.state = p_state) AND (p_task IS NULL OR c.task = p_task)
             AND (p_queue IS NULL OR c.queue = p_queue) AND c.tenant = p_tenant);
END $$;

-- figures: moves of jobs since the beginning of an hour, added up.
-- takes:   since when; a task, or null for all; the hour before which to end, or null for now
-- gives:   a row by task, states, outcome and bucket
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.figures_v1(p_since timestamptz, p_task text, p_until timestamptz) RETURNS TABLE (
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
       AND (p_until IS NULL OR c.hour < date_bin('1 hour', p_until, 'epoch'))
     GROUP BY c.task, c.from_state, c.to_state, c.outcome, c.bucket
     ORDER BY c.task COLLATE "C", c.from_state COLLATE "C", c.to_state COLLATE "C", c.outcome COLLATE "C", c.bucket;
END $$;

-- rates: moves of jobs since a time, added up by steps of a minute or an hour.
-- takes:   since when; the length of a step in seconds
-- gives:   a row by the begin of the step, state, outcome and bucket
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.rates_v1(p_since timestamptz, p_seconds integer) RETURNS TABLE (
  at timestamptz, to_state text, outcome text, bucket bigint, moves bigint, us bigint, us_max bigint
)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    SELECT date_bin(make_interval(secs => p_seconds), r.at, 'epoch') AS step, r.to_state, r.outcome, r.bucket, sum(r.moves)::bigint,
           sum(r.us)::bigint, max(r.us_max)
      FROM detent.transition_rates r WHERE r.at >= p_since
     GROUP BY step, r.to_state, r.outcome, r.bucket
     ORDER BY step, r.to_state COLLATE "C", r.outcome COLLATE "C", r.bucket;
END $$;

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

-- dead_report: what dead letters died of.
-- takes:   task, queue, tenant (null is any), how many groups
-- gives:   one row per task, queue, reason and kind of error, the largest first, of the newest 10,000 that fit
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.dead_report_v1(p_task text, p_queue text, p_tenant text, p_limit integer)
RETURNS TABLE (task text, queue text, reason text, kind text, jobs bigint, attempts bigint, oldest_at timestamptz,
               newest_at timestamptz, sample_id bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    SELECT f.task, f.queue, f.reason, f.kind, count(*), sum(f.attempt), min(f.quarantined_at), max(f.quarantined_at),
           max(f.job_id)
      FROM (SELECT d.task, d.queue, d.reason, detent.error_kind(j.error) AS kind, j.attempt, d.quarantined_at, d.job_id
              FROM (SELECT * FROM detent.dead o
                     WHERE (p_task IS NULL OR o.task = p_task) AND (p_queue IS NULL OR o.queue = p_queue)
                       AND (p_tenant IS NULL OR o.tenant = p_tenant)
                     ORDER BY o.job_id DESC LIMIT 10000) d
             CROSS JOIN LATERAL (SELECT k.error, k.attempt FROM detent.job k WHERE k.id = d.job_id OFFSET 0) j) f
     GROUP BY f.task, f.queue, f.reason, f.kind
     ORDER BY count(*) DESC, max(f.job_id) DESC, f.task COLLATE "C", f.queue COLLATE "C", f.reason COLLATE "C",
              f.kind COLLATE "C"
     LIMIT p_limit;
END $$;

-- What a stored error has in common with others of its kind: the name of the exception's class, or the first words if it
-- names none. The line that counts is the first one after the last frame of a traceback that is not indented.
CREATE OR REPLACE FUNCTION detent.error_kind(p_error text) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
  told text := regexp_replace(btrim(coalesce(p_error, ''), E' \t\n\r\v\f'), '^.*\n(?:  File "|  \|   File)[^\n]*', '');
  line text := coalesce(substring(told FROM '(?:^|\n)(?:  \| )?(\S[^\n]*)'), '');
BEGIN
  RETURN coalesce(substring(line FROM '^([A-Za-z_][A-Za-z0-9_.]*)(?::|$)'), left(line, 80));
END $$;
