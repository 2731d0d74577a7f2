-- agenda: what there is to do besides jobs, and when.
-- takes:   nothing
-- gives:   the time, and the earliest time of each kind; null where there is none of it
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.agenda_v2() RETURNS TABLE (
  now timestamptz, promote_at timestamptz, expire_at timestamptz, reap_at timestamptz, stir bigint,
  schedule_at timestamptz, reconcile_at timestamptz, operations boolean, recovery boolean, untold boolean,
  firing boolean, notices boolean
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET lock_timeout = '2s' AS $$
BEGIN
  RETURN QUERY SELECT
    detent.clock(),
    detent.calendar_time((SELECT min(w.due_at) FROM detent.waiting w WHERE w.limit_key IS NULL)),
    detent.calendar_time(
      least((SELECT min(r.expires_at) FROM detent.ready r WHERE r.expires_at IS NOT NULL),
            (SELECT min(w.expires_at) FROM detent.waiting w WHERE w.expires_at IS NOT NULL))),
    detent.calendar_time(held.first_at),
    held.stir,
    detent.calendar_time((SELECT min(s.next_at) FROM detent.schedule s WHERE s.paused_at IS NULL)),
    detent.calendar_time((SELECT min(b.reconcile_at) FROM detent.batch_run b WHERE b.reconcile_at IS NOT NULL)),
    EXISTS (SELECT 1 FROM detent.operation o WHERE o.state = 'running'),
    EXISTS (SELECT 1 FROM detent.recovery r),
    EXISTS (SELECT 1 FROM detent.untold u),
    EXISTS (SELECT 1 FROM detent.alert a WHERE a.state = 'firing'),
    EXISTS (SELECT 1 FROM detent.alert_notice n WHERE NOT n.spread)
      OR EXISTS (SELECT 1 FROM detent.alert_delivery d WHERE d.state = 'pending')
  FROM (SELECT min(x.expires_at) AS first_at, sum(extract(epoch FROM detent.calendar_time(x.expires_at)) * 1000000)::bigint AS stir
          FROM (SELECT l.expires_at FROM detent.lease l ORDER BY l.expires_at LIMIT 100) x) held;
END $$;
