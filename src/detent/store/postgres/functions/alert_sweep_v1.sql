-- alert_sweep: remind people of what still fires, and let go what is long over.
-- takes:   after how many seconds people are reminded, and after how many what is over goes
-- gives:   of how many alerts they are reminded
-- locks:   the rows of these alerts; those that others hold are left for the next time
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.alert_sweep_v1(p_remind_after double precision, p_keep double precision) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
DECLARE
  t        timestamptz := detent.clock();
  long_ago timestamptz := t - make_interval(secs => p_keep);
  a        detent.alert;
  reminded integer := 0;
  old      bigint[];
BEGIN
  FOR a IN
    SELECT k.* FROM detent.alert k
     WHERE k.state = 'firing' AND k.acknowledged_at IS NULL AND k.told_at <= t - make_interval(secs => p_remind_after)
     ORDER BY k.policy COLLATE "C", k.scope COLLATE "C" FOR UPDATE SKIP LOCKED
  LOOP
    UPDATE detent.alert k SET told_at = t WHERE k.policy = a.policy AND k.scope = a.scope;
    PERFORM detent.alert_tell(a.policy, a.scope, 'still', a.message, t);
    reminded := reminded + 1;
  END LOOP;
  old := ARRAY(SELECT k.n FROM detent.alert_notice k WHERE k.at < long_ago ORDER BY k.at, k.n LIMIT 1000);
  IF cardinality(old) > 0 THEN
    DELETE FROM detent.alert_delivery d WHERE d.notice_n = ANY (old);
    DELETE FROM detent.alert_notice k WHERE k.n = ANY (old);
  END IF;
  DELETE FROM detent.alert k
   WHERE k.resolved_at < long_ago AND NOT EXISTS (
     SELECT 1 FROM detent.alert_notice n WHERE n.policy = k.policy AND n.scope = k.scope AND n.kind <> 'still');
  RETURN reminded;
END $$;
