-- limit_refill: in how many seconds the quickest bucket on some tasks and queues fills up.
-- takes:   queues (null is all of them), tasks
-- gives:   the seconds; infinity if none of their limits has a rate; null if they have no limit
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.limit_refill_v1(p_queues text[], p_tasks text[]) RETURNS double precision
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN (
    SELECT min(coalesce(l.burst * l.per / l.rate, 'infinity'))
      FROM detent.rate_limit l
     WHERE l.key IN (
       SELECT m.limit_key FROM detent.limit_member m WHERE m.kind = 'task' AND m.name = ANY (p_tasks)
       UNION
       SELECT m.limit_key FROM detent.limit_member m WHERE m.kind = 'queue' AND (p_queues IS NULL OR m.name = ANY (p_queues))));
END $$;
