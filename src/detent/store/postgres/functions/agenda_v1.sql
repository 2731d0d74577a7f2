-- agenda: what there is to do besides jobs, and when.
-- takes:   nothing
-- gives:   the time, and the earliest time of each kind; null where there is none of it
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.agenda_v1() RETURNS TABLE (
  now timestamptz, promote_at timestamptz, expire_at timestamptz, reap_at timestamptz, schedule_at timestamptz,
  operations boolean, recovery boolean, untold boolean
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET lock_timeout = '2s' AS $$
BEGIN
  RETURN QUERY SELECT
    detent.clock(),
    (SELECT min(w.due_at) FROM detent.waiting w WHERE w.limit_key IS NULL),
    least((SELECT min(r.expires_at) FROM detent.ready r WHERE r.expires_at IS NOT NULL),
          (SELECT min(w.expires_at) FROM detent.waiting w WHERE w.expires_at IS NOT NULL)),
    (SELECT min(l.expires_at) FROM detent.lease l),
    (SELECT min(s.next_at) FROM detent.schedule s WHERE s.paused_at IS NULL),
    EXISTS (SELECT 1 FROM detent.operation o WHERE o.state = 'running'),
    EXISTS (SELECT 1 FROM detent.recovery r),
    EXISTS (SELECT 1 FROM detent.untold u);
END $$;
