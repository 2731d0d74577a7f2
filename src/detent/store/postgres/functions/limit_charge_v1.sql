-- limit_charge: say what attempts have cost the limits of their tasks, in all.
-- takes:   jobs, attempts and what each has cost
-- gives:   one row per item: what is left in the bucket then (null where the attempt is under no rate), or what was found
--          instead of the holder
-- locks:   the limits, by key: whoever claims under them comes after. No job: a slot is of one attempt, and the next claim
--          of the job makes it that of another
-- refuses: whoever is not the holder
CREATE OR REPLACE FUNCTION detent.limit_charge_v1(p_ids bigint[], p_attempts integer[], p_costs double precision[])
RETURNS TABLE (ord integer, tokens double precision, instead text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  t    timestamptz;
  item record;
  took double precision;
BEGIN
  PERFORM 1 FROM detent.rate_limit l WHERE l.key IN (
    SELECT coalesce(j.limit_key, m.limit_key) FROM detent.job j
      JOIN detent.limit_member m ON m.kind = 'task' AND m.name = j.task
     WHERE j.id = ANY (p_ids))
   ORDER BY l.key FOR UPDATE;
  t := detent.clock();
  FOR item IN
    SELECT u.ord, u.id, u.attempt, u.cost, j AS job, coalesce(j.limit_key, m.limit_key) AS key
      FROM unnest(p_ids, p_attempts, p_costs) WITH ORDINALITY AS u (id, attempt, cost, ord)
      LEFT JOIN detent.job j ON j.id = u.id
      LEFT JOIN detent.limit_member m ON m.kind = 'task' AND m.name = j.task
     ORDER BY u.ord
  LOOP
    ord := item.ord;
    tokens := NULL;
    instead := detent.holder_lost(item.job, item.attempt, t);
    IF instead IS NULL THEN
      SELECT s.cost INTO took FROM detent.limit_slot s
       WHERE s.limit_key = item.key AND s.job_id = item.id AND s.attempt = item.attempt;
      IF FOUND THEN
        UPDATE detent.limit_slot s SET cost = item.cost WHERE s.limit_key = item.key AND s.job_id = item.id;
        UPDATE detent.rate_limit l
           SET tokens = least(l.burst, detent.limit_tokens(l, t) + took - item.cost), refilled_at = greatest(l.refilled_at, t)
         WHERE l.key = item.key AND l.rate IS NOT NULL
        RETURNING l.tokens INTO tokens;
      END IF;
    END IF;
    RETURN NEXT;
  END LOOP;
END $$;
