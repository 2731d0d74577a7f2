-- alert_told: what became of deliveries that were taken.
-- takes:   the sink, and for each its notice, its state, what went wrong, after how many seconds it is tried again, and
--          whether it was tried at all
-- gives:   nothing
-- locks:   their rows
-- refuses: nothing; what is not pending any more stays as it is
CREATE OR REPLACE FUNCTION detent.alert_told_v1(
  p_sink text, p_notices bigint[], p_states text[], p_errors text[], p_delays double precision[], p_tried boolean[]
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
DECLARE
  t timestamptz := detent.clock();
BEGIN
  FOR i IN 1 .. cardinality(p_notices) LOOP
    UPDATE detent.alert_delivery d
       SET state = p_states[i], error = left(p_errors[i], 2000), taken_until = NULL,
           due_at = t + make_interval(secs => p_delays[i]), tries = greatest(d.tries - (NOT p_tried[i])::integer, 0),
           sent_at = CASE WHEN p_states[i] <> 'pending' THEN t END
     WHERE d.notice_n = p_notices[i] AND d.sink = p_sink AND d.state = 'pending';
  END LOOP;
END $$;
