-- dead_report: what dead letters died of.
-- takes:   task, queue, tenant (null is any), how many groups
-- gives:   one row per task, queue, reason and kind of error, the largest first
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.dead_report_v1(p_task text, p_queue text, p_tenant text, p_limit integer)
RETURNS TABLE (task text, queue text, reason text, kind text, jobs bigint, attempts bigint, oldest_at timestamptz,
               newest_at timestamptz, sample_id bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    SELECT f.task, f.queue, f.reason, f.kind, count(*), sum(f.attempt), min(f.quarantined_at), max(f.quarantined_at),
           max(f.job_id)
      FROM (SELECT d.task, d.queue, d.reason, detent.error_kind(j.error) AS kind, j.attempt, d.quarantined_at, d.job_id
              FROM detent.dead d JOIN detent.job j ON j.id = d.job_id
             WHERE (p_task IS NULL OR d.task = p_task) AND (p_queue IS NULL OR d.queue = p_queue)
               AND (p_tenant IS NULL OR d.tenant = p_tenant)) f
     GROUP BY f.task, f.queue, f.reason, f.kind
     ORDER BY count(*) DESC, max(f.job_id) DESC, f.task COLLATE "C", f.queue COLLATE "C", f.reason COLLATE "C",
              f.kind COLLATE "C"
     LIMIT p_limit;
END $$;
