-- lanes_make: make the lanes of these ranks, where they are not there yet.
-- takes:   parallel arrays of queue, task, tenant, priority, limit key (empty: none)
-- gives:   nothing
-- locks:   the lanes it makes, until the transaction ends: so it is called in one of its own, before a caller's
--          transaction needs a new lane. Otherwise everybody else who needs that lane would wait for the caller.
-- refuses: nothing
-- differs: SQLite has one writer, who makes lanes as it goes
CREATE OR REPLACE FUNCTION detent.lanes_make_v1(
  p_queues text[], p_tasks text[], p_tenants text[], p_priorities smallint[], p_limit_keys text[]
) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
  SELECT detent.lane_of(k.queue, k.task, k.tenant, k.priority, k.limit_key)
    FROM unnest(p_queues, p_tasks, p_tenants, p_priorities, p_limit_keys) AS k (queue, task, tenant, priority, limit_key)
   ORDER BY k.queue, k.task, k.tenant, k.priority, k.limit_key;
$$;
