-- job_discard: give up quarantined and failed jobs.
-- takes:   jobs, who, why
-- gives:   one row per item: the state it was found in, null where there is no such job
-- locks:   the jobs, by id, each with its ready or waiting row first
-- refuses: what is pending, running or has succeeded; ops runs, which end once (their state is given as theirs)
CREATE OR REPLACE FUNCTION detent.job_discard_v1(p_ids bigint[], p_actor text, p_reason text DEFAULT NULL)
RETURNS TABLE (ord integer, from_state text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  t    timestamptz := detent.clock();
  item record;
  j    detent.job;
BEGIN
  FOR item IN SELECT u.* FROM unnest(p_ids) WITH ORDINALITY AS u (id, ord) ORDER BY u.id, u.ord LOOP
    ord := item.ord;
    j := detent.job_lock(item.id);
    from_state := detent.job_state_told(j);
    IF detent.is_job_move('discard', from_state, 'cancelled') THEN
      PERFORM detent.job_put_away(j, 'cancelled', 'discard', p_actor, p_reason, t);
    END IF;
    RETURN NEXT;
  END LOOP;
END $$;
