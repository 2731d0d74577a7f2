-- Take ready rows where some of the lanes are under limits: none is taken beyond what each limit has room for.
--
-- Takes what the ordinary claim would, and keeps it in that order up to the first job there is no room for. That one and all
-- behind it go back to their places, and the next round begins with the turn of its tenant: to be passed over costs nobody
-- a turn. Lanes under a limit without room are not entered, so there are at most as many rounds as limits, and one.
-- The rows of the limits stay locked until the claim is durable; whoever claims under the same limit comes after.
CREATE OR REPLACE FUNCTION detent.claim_within_limits(
  p_queues text[], p_tasks text[], p_tenants text[], p_limit integer, p_after_tenant text,
  OUT ids bigint[], OUT keyed bigint[]
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  t       timestamptz;
  keys    text[];
  room    jsonb := '{}';
  lanes   integer[];
  tenants integer;
  taken   record;
  item    record;
  one     text;
  passed  boolean;
BEGIN
  ids := '{}';
  keyed := '{}';
  keys := ARRAY(
    SELECT l.key FROM detent.rate_limit l WHERE l.key IN (
      SELECT m.limit_key FROM detent.limit_member m
       WHERE (m.kind = 'task' AND m.name = ANY (p_tasks))
          OR (m.kind = 'queue' AND (p_queues IS NULL OR m.name = ANY (p_queues))))
     ORDER BY l.key FOR UPDATE);
  t := detent.clock();
  FOREACH one IN ARRAY keys LOOP
    PERFORM detent.limit_sweep(one);
    room := room || jsonb_build_object(one, detent.limit_room(one, p_limit, t));
  END LOOP;
  LOOP
    SELECT array_agg(l.id), count(DISTINCT l.tenant) INTO lanes, tenants
      FROM detent.lane l
     WHERE l.task = ANY (p_tasks)
       AND (p_queues IS NULL OR l.queue = ANY (p_queues))
       AND (p_tenants IS NULL OR l.tenant = ANY (p_tenants))
       AND NOT EXISTS (SELECT 1 FROM detent.queue q WHERE q.name = l.queue AND q.paused_at IS NOT NULL)
       AND NOT EXISTS (SELECT 1 FROM detent.limit_member m
                        WHERE (m.kind, m.name) IN (('task', l.task), ('queue', l.queue))
                          AND (room ->> m.limit_key)::integer = 0);
    EXIT WHEN lanes IS NULL;
    SELECT c.ids, c.keyed INTO taken
      FROM detent.claim_from_lanes(lanes, array_fill('-infinity'::timestamptz, ARRAY[cardinality(lanes)]),
             array_fill(0::bigint, ARRAY[cardinality(lanes)]), tenants, p_limit - cardinality(ids), p_after_tenant) c;
    passed := true;
    FOR item IN
      SELECT c.job, c.id, c.tenant, c.under FROM (
        SELECT j AS job, j.id, j.tenant,
               row_number() OVER (PARTITION BY j.tenant ORDER BY j.priority DESC, j.due_at, j.id) AS turn,
               ARRAY(SELECT DISTINCT m.limit_key FROM detent.limit_member m
                      WHERE (m.kind, m.name) IN (('task', j.task), ('queue', j.queue)) AND m.limit_key = ANY (keys)) AS under
          FROM detent.job j WHERE j.id = ANY (taken.ids)) c
       ORDER BY c.turn, coalesce(c.tenant COLLATE "C" <= p_after_tenant, false), c.tenant COLLATE "C"
    LOOP
      passed := passed AND NOT EXISTS (SELECT 1 FROM unnest(item.under) AS u (key) WHERE (room ->> u.key)::integer = 0);
      IF NOT passed THEN
        PERFORM detent.queue_enter(item.job, t, item.id = ANY (taken.keyed));
      ELSE
        ids := ids || item.id;
        IF item.id = ANY (taken.keyed) THEN
          keyed := keyed || item.id;
        END IF;
        p_after_tenant := item.tenant;
        FOREACH one IN ARRAY item.under LOOP
          room := jsonb_set(room, ARRAY[one], to_jsonb((room ->> one)::integer - 1));
          PERFORM detent.limit_spend(one, ARRAY[item.id], t);
        END LOOP;
      END IF;
    END LOOP;
    EXIT WHEN passed OR cardinality(ids) >= p_limit;
  END LOOP;
END $$;
