-- signal_send: put signals into the mailboxes of workflows, and wake those that wait for them.
-- takes:   jobs, names, payloads, dedupes, actors, reasons; p_apart: leave wake requests only, since the caller's transaction may
--          stay open; p_notify: always notify waiters, instead of looking first whether a worker waits
-- gives:   one row per item: `sent` or `found` with the number of the signal; or why it was refused: `gone`, `ended` (with the state),
--          `conflict` (with the tenant), `full` (with how many are unread). `requested`: a wake request was left
-- locks:   the new signals; then, of each job, its waiting row and the job, if that is possible at once. Only the same dedupe in
--          another transaction is waited for
-- refuses: item by item
-- differs: SQLite has one writer, so it wakes at once, always
CREATE OR REPLACE FUNCTION detent.signal_send_v1(
  p_ids bigint[], p_names text[], p_payloads text[], p_dedupes text[], p_actors text[], p_reasons text[],
  p_apart boolean DEFAULT false, p_notify boolean DEFAULT true
) RETURNS TABLE (ord integer, answer text, seq bigint, detail text, requested boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s'
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_variable
DECLARE
  t       timestamptz := detent.clock();
  first   bigint;
  item    record;
  known   record;
  j       detent.job;
  unread  bigint;
  top     bigint;
  to_wake bigint[] := '{}';
  is_left boolean;
  notify  boolean := false;
BEGIN
  first := detent.ids_reserve_v1(cardinality(p_ids));
  requested := false;
  -- In one order everywhere, so that two callers never wait for each other.
  FOR item IN
    SELECT u.* FROM unnest(p_ids, p_names, p_payloads, p_dedupes, p_actors, p_reasons) WITH ORDINALITY
      AS u (id, name, payload, dedupe, actor, reason, ord) ORDER BY u.id, u.name, u.dedupe, u.ord
  LOOP
    ord := item.ord;
    answer := NULL;
    seq := NULL;
    detail := NULL;
    SELECT k.* INTO j FROM detent.job k WHERE k.id = item.id;
    IF NOT FOUND THEN
      answer := 'gone';
    ELSIF item.dedupe IS NOT NULL THEN
      SELECT g.seq, g.payload INTO known FROM detent.workflow_signal g
       WHERE g.job_id = item.id AND g.name = item.name AND g.dedupe = item.dedupe;
      IF FOUND THEN
        answer := CASE WHEN known.payload = item.payload THEN 'found' ELSE 'conflict' END;
      END IF;
    END IF;
    IF answer IS NULL AND j.state IN ('succeeded', 'failed', 'cancelled') THEN
      answer := 'ended';
      detail := j.state;
    ELSIF answer IS NULL THEN
      unread := (SELECT count(*) FROM (SELECT 1 FROM detent.workflow_unread u WHERE u.job_id = item.id LIMIT 1000) s);
      IF unread >= 1000 THEN
        answer := 'full';
        detail := unread::text;
      ELSE
        seq := first + item.ord - 1;
        -- Another sender may have written a higher number in between. Then take a later one, and never the next after its: that
        -- may be reserved for a third sender.
        top := (SELECT max(g.seq) FROM detent.workflow_signal g WHERE g.job_id = item.id AND g.name = item.name);
        IF top = seq OR top >= first + cardinality(p_ids) THEN
          seq := greatest(detent.ids_reserve_v1(1), top + 1);
        END IF;
        INSERT INTO detent.workflow_signal (job_id, name, seq, payload, dedupe, actor, reason, sent_at)
          VALUES (item.id, item.name, seq, item.payload, item.dedupe, item.actor, item.reason, detent.job_now(j, t))
          ON CONFLICT (job_id, name, dedupe) WHERE dedupe IS NOT NULL DO NOTHING;
        IF FOUND THEN
          answer := 'sent';
          to_wake := to_wake || item.id;
        ELSE
          SELECT g.seq, g.payload INTO known FROM detent.workflow_signal g
           WHERE g.job_id = item.id AND g.name = item.name AND g.dedupe = item.dedupe;
          answer := CASE WHEN known.payload = item.payload THEN 'found' ELSE 'conflict' END;
        END IF;
      END IF;
    END IF;
    IF answer = 'found' THEN
      seq := known.seq;
    ELSIF answer = 'conflict' THEN
      detail := j.tenant;
    END IF;
    RETURN NEXT;
  END LOOP;
  FOR item IN SELECT DISTINCT u.id FROM unnest(to_wake) AS u (id) ORDER BY u.id LOOP
    answer := CASE WHEN p_apart THEN 'locked' ELSE detent.workflow_wake_up(item.id, t) END;
    IF answer = 'locked' THEN
      INSERT INTO detent.wake_request (job_id) VALUES (item.id);
      requested := true;
    END IF;
    notify := notify OR answer IN ('woken', 'locked');
  END LOOP;
  IF notify THEN
    PERFORM detent.wake_waiters(p_notify);
  END IF;
  IF requested THEN
    ord := 0;
    answer := 'requested';
    seq := NULL;
    detail := NULL;
    RETURN NEXT;
  END IF;
END $$;

-- signal_wake: carry out the wake requests of these workflows, for the caller that has left them.
-- takes:   jobs
-- gives:   how many were carried out
-- locks:   the requests; of each job its waiting row and the job. Whatever others hold is left to workflow_wake
-- refuses: nothing
-- differs: SQLite leaves no requests
CREATE OR REPLACE FUNCTION detent.signal_wake_v1(p_ids bigint[]) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  t      timestamptz := detent.clock();
  item   record;
  answer text;
  woken  boolean := false;
  done   bigint[] := '{}';
BEGIN
  FOR item IN
    SELECT r.n, r.job_id FROM detent.wake_request r WHERE r.job_id = ANY (p_ids) ORDER BY r.n LIMIT 1000 FOR UPDATE SKIP LOCKED
  LOOP
    answer := detent.workflow_wake_up(item.job_id, t);
    woken := woken OR answer = 'woken';
    IF answer <> 'locked' THEN
      done := done || item.n;
    END IF;
  END LOOP;
  DELETE FROM detent.wake_request r WHERE r.n = ANY (done);
  IF woken THEN
    PERFORM detent.wake_waiters(false);
  END IF;
  RETURN cardinality(done);
END $$;
