-- schedule_put: create or change a schedule.
-- takes:   its columns, who, why
-- gives:   the schedule as it is then
-- locks:   its row
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.schedule_put_v2(
  p_name text, p_tenant text, p_cron text, p_zone text, p_catch_up text, p_task text, p_payload text, p_queue text,
  p_priority smallint, p_attempts_max integer, p_dead_letter boolean, p_idempotent boolean, p_unique_pending boolean,
  p_limit_key text, p_next_at timestamptz, p_cost integer, p_actor text, p_reason text
) RETURNS SETOF detent.schedule
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  t      timestamptz := detent.clock();
  was    detent.schedule;
  stands text;
BEGIN
  INSERT INTO detent.schedule (name, tenant, cron, zone, catch_up, task, payload, queue, priority, attempts_max,
      dead_letter, idempotent, unique_pending, limit_key, cost, next_at, changed_at)
    VALUES (p_name, p_tenant, p_cron, p_zone, p_catch_up, p_task, p_payload, p_queue, p_priority, p_attempts_max,
            p_dead_letter, p_idempotent, p_unique_pending, p_limit_key, p_cost, p_next_at, t)
    ON CONFLICT (name) DO NOTHING;
  IF FOUND THEN
    PERFORM detent.schedule_log(p_name, p_tenant, NULL, 'active', 'create', p_actor, p_reason, t);
  ELSE
    SELECT s.* INTO was FROM detent.schedule s WHERE s.name = p_name FOR UPDATE;
    UPDATE detent.schedule s
       SET tenant = p_tenant, cron = p_cron, zone = p_zone, catch_up = p_catch_up, task = p_task, payload = p_payload,
           queue = p_queue, priority = p_priority, attempts_max = p_attempts_max, dead_letter = p_dead_letter,
           idempotent = p_idempotent, unique_pending = p_unique_pending, limit_key = p_limit_key, cost = p_cost,
           changed_at = t, next_at = CASE WHEN s.cron = p_cron AND s.zone = p_zone THEN s.next_at ELSE p_next_at END
     WHERE s.name = p_name
       AND (s.tenant, s.cron, s.zone, s.catch_up, s.task, s.payload, s.queue, s.priority, s.attempts_max,
            s.dead_letter, s.idempotent, s.unique_pending, s.limit_key, s.cost)
           IS DISTINCT FROM
           (p_tenant, p_cron, p_zone, p_catch_up, p_task, p_payload, p_queue, p_priority, p_attempts_max,
            p_dead_letter, p_idempotent, p_unique_pending, p_limit_key, p_cost);
    IF FOUND THEN
      stands := CASE WHEN was.paused_at IS NULL THEN 'active' ELSE 'paused' END;
      PERFORM detent.schedule_log(p_name, p_tenant, stands, stands, 'change', p_actor, p_reason, t);
    END IF;
  END IF;
  RETURN QUERY SELECT s.* FROM detent.schedule s WHERE s.name = p_name;
END $$;

-- schedule_remove: remove a schedule.
-- takes:   the schedule, who, why
-- gives:   the state it was in; null if there is no such schedule
-- locks:   its row
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.schedule_remove_v1(
  p_name text, p_actor text, p_reason text DEFAULT NULL
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  t   timestamptz := detent.clock();
  was detent.schedule;
BEGIN
  SELECT s.* INTO was FROM detent.schedule s WHERE s.name = p_name FOR UPDATE;
  IF was.name IS NOT NULL THEN
    PERFORM detent.schedule_log(p_name, was.tenant, CASE WHEN was.paused_at IS NULL THEN 'active' ELSE 'paused' END,
                                'removed', 'remove', p_actor, p_reason, t);
    DELETE FROM detent.schedule s WHERE s.name = p_name;
    DELETE FROM detent.schedule_fire f WHERE f.schedule = p_name;
  END IF;
  RETURN CASE WHEN was.name IS NULL THEN NULL WHEN was.paused_at IS NULL THEN 'active' ELSE 'paused' END;
END $$;

-- schedule_pause: stop the ticks of a schedule until it is resumed.
-- takes:   the schedule, who, why
-- gives:   the state it was in; null if there is no such schedule
-- locks:   its row
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.schedule_pause_v1(
  p_name text, p_actor text, p_reason text DEFAULT NULL
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  t   timestamptz := detent.clock();
  was detent.schedule;
BEGIN
  SELECT s.* INTO was FROM detent.schedule s WHERE s.name = p_name FOR UPDATE;
  IF was.name IS NOT NULL AND was.paused_at IS NULL THEN
    PERFORM detent.schedule_log(p_name, was.tenant, 'active', 'paused', 'pause', p_actor, p_reason, t);
    UPDATE detent.schedule SET paused_at = t, paused_by = p_actor, reason = p_reason WHERE name = p_name;
  END IF;
  RETURN CASE WHEN was.name IS NULL THEN NULL WHEN was.paused_at IS NULL THEN 'active' ELSE 'paused' END;
END $$;

-- schedule_resume: resume a schedule.
-- takes:   the schedule, its next tick, who, why
-- gives:   the state it was in; null if there is no such schedule
-- locks:   its row
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.schedule_resume_v1(
  p_name text, p_next_at timestamptz, p_actor text, p_reason text DEFAULT NULL
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  t   timestamptz := detent.clock();
  was detent.schedule;
BEGIN
  SELECT s.* INTO was FROM detent.schedule s WHERE s.name = p_name FOR UPDATE;
  IF was.paused_at IS NOT NULL THEN
    PERFORM detent.schedule_log(p_name, was.tenant, 'paused', 'active', 'resume', p_actor, p_reason, t);
    UPDATE detent.schedule SET paused_at = NULL, paused_by = NULL, reason = NULL, next_at = p_next_at WHERE name = p_name;
  END IF;
  RETURN CASE WHEN was.name IS NULL THEN NULL WHEN was.paused_at IS NULL THEN 'active' ELSE 'paused' END;
END $$;

-- schedule_run: record that a schedule is run out of turn. The caller enqueues the job in the same transaction.
-- takes:   the schedule, who, why
-- gives:   the state it is in; null if there is no such schedule
-- locks:   its row, against removal
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.schedule_run_v1(p_name text, p_actor text, p_reason text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  was   detent.schedule;
  state text;
BEGIN
  SELECT s.* INTO was FROM detent.schedule s WHERE s.name = p_name FOR SHARE;
  IF was.name IS NOT NULL THEN
    state := CASE WHEN was.paused_at IS NULL THEN 'active' ELSE 'paused' END;
    PERFORM detent.schedule_log(p_name, was.tenant, state, state, 'run_now', p_actor, p_reason, detent.clock());
  END IF;
  RETURN state;
END $$;

-- schedule_list: every schedule.
-- takes:   nothing
-- gives:   schedules by name
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.schedule_list_v1() RETURNS SETOF detent.schedule
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY SELECT s.* FROM detent.schedule s ORDER BY s.name COLLATE "C";
END $$;

-- schedule_due: schedules that are due.
-- takes:   how many at most
-- gives:   schedules that are not paused, the longest due first
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.schedule_due_v1(p_limit integer) RETURNS SETOF detent.schedule
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
DECLARE
  t timestamptz := detent.clock();
BEGIN
  RETURN QUERY
    SELECT s.* FROM detent.schedule s WHERE s.next_at <= t AND s.paused_at IS NULL
     ORDER BY s.next_at, s.name COLLATE "C" LIMIT p_limit;
END $$;

-- schedule_fire: record the ticks of a schedule. The caller enqueues the jobs in the same transaction.
-- takes:   the schedule, its expected next tick, the ticks and their jobs (null: skipped), the next tick after them
-- gives:   the ticks that are new; null if another caller was first
-- locks:   the schedule's row
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.schedule_fire_v1(
  p_name text, p_expected timestamptz, p_fire_ats timestamptz[], p_job_ids bigint[], p_next_at timestamptz
) RETURNS timestamptz[]
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
DECLARE
  t     timestamptz := detent.clock();
  fresh timestamptz[];
BEGIN
  UPDATE detent.schedule s
     SET next_at = p_next_at, last_at = coalesce((SELECT max(u.at) FROM unnest(p_fire_ats) AS u (at)), s.last_at)
   WHERE s.name = p_name AND s.next_at = p_expected AND s.paused_at IS NULL;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  WITH made AS (
    INSERT INTO detent.schedule_fire (schedule, fire_at, job_id, at)
      SELECT p_name, u.fire_at, u.job_id, t FROM unnest(p_fire_ats, p_job_ids) AS u (fire_at, job_id)
      ON CONFLICT (schedule, fire_at) DO NOTHING
    RETURNING fire_at
  )
  SELECT coalesce(array_agg(m.fire_at), '{}') INTO fresh FROM made m;
  DELETE FROM detent.schedule_fire f WHERE f.schedule = p_name AND f.fire_at < t - interval '30 days';
  RETURN fresh;
END $$;

-- fire_stands_for: record that an equal job, which waits already, stands for the job of a tick.
-- takes:   the schedule, the job that was not created, the job that waits
-- gives:   nothing
-- locks:   the tick's row, which is the caller's own
-- refuses: nothing
-- differs: on SQLite it is a statement of schedule_fire itself
CREATE OR REPLACE FUNCTION detent.fire_stands_for_v1(p_name text, p_job_id bigint, p_holder bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  UPDATE detent.schedule_fire f SET job_id = p_holder WHERE f.schedule = p_name AND f.job_id = p_job_id;
END $$;

-- Record a change of a schedule.
CREATE OR REPLACE FUNCTION detent.schedule_log(
  p_name text, p_tenant text, p_from text, p_to text, p_trigger text, p_actor text, p_reason text, t timestamptz
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO detent.transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, reason, at)
    VALUES (p_tenant, 'schedule', p_name, p_from, p_to, p_trigger, p_actor, p_reason, t);
END $$;

-- declaration_put: record that a program declares something in its code, or that it was removed.
-- takes:   the kind of thing, its name, the fingerprint of the declaration (empty: it was removed), and whether a declaration
--          that was replaced is in force again
-- gives:   `new` (it is in force now), `same` (it was in force already) or `replaced` (another one has replaced it)
-- locks:   the rows of this name
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.declaration_put_v1(
  p_kind text, p_name text, p_fingerprint text, p_again boolean
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
DECLARE
  t      timestamptz := detent.clock();
  newest detent.declaration;
BEGIN
  LOOP
    PERFORM 1 FROM detent.declaration d WHERE d.kind = p_kind AND d.name = p_name ORDER BY d.n FOR UPDATE;
    SELECT d.* INTO newest FROM detent.declaration d
     WHERE d.kind = p_kind AND d.name = p_name ORDER BY d.n DESC LIMIT 1;
    IF coalesce(newest.fingerprint, '') = p_fingerprint THEN
      RETURN 'same';
    END IF;
    IF NOT p_again AND EXISTS (SELECT 1 FROM detent.declaration d
                                WHERE d.kind = p_kind AND d.name = p_name AND d.fingerprint = p_fingerprint) THEN
      RETURN 'replaced';
    END IF;
    INSERT INTO detent.declaration (kind, name, n, fingerprint, at)
      VALUES (p_kind, p_name, coalesce(newest.n, 0) + 1, p_fingerprint, t) ON CONFLICT DO NOTHING;
    IF FOUND THEN
      DELETE FROM detent.declaration d WHERE d.kind = p_kind AND d.name = p_name AND d.n <= newest.n - 49;
      RETURN 'new';
    END IF;
  END LOOP;
END $$;

-- declaration_list: the declarations in force.
-- takes:   nothing
-- gives:   the newest declaration of each thing that was not removed, by kind and name
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.declaration_list_v1() RETURNS SETOF detent.declaration
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
    SELECT d.* FROM detent.declaration d
     WHERE d.fingerprint <> ''
       AND d.n = (SELECT max(o.n) FROM detent.declaration o WHERE o.kind = d.kind AND o.name = d.name)
     ORDER BY d.kind COLLATE "C", d.name COLLATE "C";
END $$;
