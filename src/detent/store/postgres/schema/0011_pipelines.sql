-- Pipeline runs: fan out over partitions, stage their records page by page, fan in to one consolidation.
--
-- pipeline_run   one run: what it is for, its state, how many of its partitions have ended
-- partition      one part of a run: a job with an offset; its state follows from its job's
-- staged         the records of a run, one for each key, until they are consolidated
-- portion        some staged records in the order of their keys, consolidated in one transaction; held by a job
-- seen           the keys that a pipeline has consolidated and not retired: what is gone is known by them
-- watermark      up to when a source is known; it moves only with the run that completes
--
-- States move as `lifecycle/library.py` declares, whoever asks. What a job's end means for its partition, and the last
-- partition's end for the run, is decided by the triggers at the end, in the transaction that ends the job.

CREATE TABLE detent.pipeline_run (
  id               bigint NOT NULL,
  tenant           text NOT NULL DEFAULT '',
  name             text NOT NULL,
  payload          text NOT NULL,
  watermark        text NOT NULL,
  since            timestamptz,
  captured_at      timestamptz NOT NULL,
  is_full          boolean NOT NULL,
  is_forced        boolean NOT NULL DEFAULT false,
  started_by       text NOT NULL,
  reason           text,
  retires          boolean NOT NULL DEFAULT false,
  queue            text NOT NULL,
  priority         smallint NOT NULL DEFAULT 0,
  replicas         integer NOT NULL,
  portion_size     integer NOT NULL,
  plan_job_id      bigint NOT NULL,
  state            text NOT NULL DEFAULT 'created',
  tolerated        integer NOT NULL DEFAULT 0,
  partitions       integer NOT NULL DEFAULT 0,
  parts_ended      integer NOT NULL DEFAULT 0,
  parts_failed     integer NOT NULL DEFAULT 0,
  portions         integer NOT NULL DEFAULT 0,
  cut_key          text COLLATE "C" NOT NULL DEFAULT '',
  finisher_job_id  bigint,
  finisher_attempt integer,
  finisher_tries   integer NOT NULL DEFAULT 0,
  retired          bigint NOT NULL DEFAULT 0,
  error            text,
  created_at       timestamptz NOT NULL,
  started_at       timestamptz,
  finished_at      timestamptz,
  moved_at         timestamptz NOT NULL,
  CONSTRAINT pipeline_run_pkey PRIMARY KEY (id),
  CONSTRAINT pipeline_run_state_known CHECK (state IN ('created', 'workers_running', 'consolidation_skipped', 'consolidation_triggered', 'consolidating', 'completed', 'failed')),
  CONSTRAINT pipeline_run_counts_fit CHECK (parts_failed BETWEEN 0 AND parts_ended AND parts_ended <= partitions),
  CONSTRAINT pipeline_run_finished_has_time CHECK ((state IN ('completed', 'failed')) = (finished_at IS NOT NULL)),
  CONSTRAINT pipeline_run_consolidates_when_all_ended CHECK (state IN ('created', 'workers_running', 'failed') OR parts_ended = partitions),
  CONSTRAINT pipeline_run_force_has_reason CHECK (NOT is_forced OR (reason IS NOT NULL AND reason <> '')),
  CONSTRAINT pipeline_run_bounds CHECK (replicas BETWEEN 1 AND 16 AND portion_size >= 1)
);
CREATE UNIQUE INDEX pipeline_run_one_active ON detent.pipeline_run (tenant, watermark) WHERE state NOT IN ('completed', 'failed');

CREATE TABLE detent.partition (
  run_id      bigint NOT NULL,
  n           integer NOT NULL,
  key         text NOT NULL,
  payload     text NOT NULL,
  job_id      bigint NOT NULL,
  state       text NOT NULL DEFAULT 'pending',
  next_offset text NOT NULL DEFAULT '0',
  last_page   boolean NOT NULL DEFAULT false,
  tries       integer NOT NULL DEFAULT 0,
  pages       integer NOT NULL DEFAULT 0,
  records     bigint NOT NULL DEFAULT 0,
  staged      bigint NOT NULL DEFAULT 0,
  error       text,
  started_at  timestamptz,
  paged_at    timestamptz,
  ended_at    timestamptz,
  CONSTRAINT partition_pkey PRIMARY KEY (run_id, n),
  CONSTRAINT partition_one_per_key UNIQUE (run_id, key),
  CONSTRAINT partition_one_per_job UNIQUE (job_id),
  CONSTRAINT partition_state_known CHECK (state IN ('pending', 'in_progress', 'fetching_pages', 'completed', 'failed')),
  CONSTRAINT partition_completed_has_its_last_page CHECK (state <> 'completed' OR last_page),
  CONSTRAINT partition_pages_are_fetched CHECK (pages = 0 OR state IN ('fetching_pages', 'completed', 'failed')),
  CONSTRAINT partition_ended_has_time CHECK ((state IN ('completed', 'failed')) = (ended_at IS NOT NULL)),
  CONSTRAINT partition_staged_is_of_its_records CHECK (staged BETWEEN 0 AND records)
);

CREATE TABLE detent.staged (
  run_id      bigint NOT NULL,
  key         text COLLATE "C" NOT NULL,
  data        text NOT NULL,
  partition_n integer NOT NULL,
  CONSTRAINT staged_pkey PRIMARY KEY (run_id, key)
);

CREATE TABLE detent.portion (
  run_id    bigint NOT NULL,
  n         integer NOT NULL,
  first_key text COLLATE "C" NOT NULL,
  last_key  text COLLATE "C" NOT NULL,
  records   bigint NOT NULL,
  tries     integer NOT NULL DEFAULT 0,
  job_id    bigint NOT NULL,
  attempt   integer NOT NULL,
  done_at   timestamptz,
  CONSTRAINT portion_pkey PRIMARY KEY (run_id, n)
);
CREATE INDEX portion_open ON detent.portion (run_id, n) WHERE done_at IS NULL;

CREATE TABLE detent.seen (
  tenant    text NOT NULL,
  watermark text NOT NULL,
  key       text COLLATE "C" NOT NULL,
  CONSTRAINT seen_pkey PRIMARY KEY (tenant, watermark, key)
);

CREATE TABLE detent.watermark (
  tenant   text NOT NULL,
  name     text NOT NULL,
  value    timestamptz NOT NULL,
  run_id   bigint NOT NULL,
  moved_at timestamptz NOT NULL,
  CONSTRAINT watermark_pkey PRIMARY KEY (tenant, name)
);

-- A run with what its partitions and portions have come to, added up.
CREATE VIEW detent.pipeline_runs AS
  SELECT r.id, r.tenant, r.name, r.payload, r.watermark, r.since, r.captured_at, r.is_full, r.is_forced, r.started_by,
         r.reason, r.retires, r.state, r.tolerated, r.partitions, r.parts_ended, r.parts_failed,
         (SELECT coalesce(sum(p.pages), 0)::bigint FROM detent.partition p WHERE p.run_id = r.id) AS pages,
         (SELECT coalesce(sum(p.records), 0)::bigint FROM detent.partition p WHERE p.run_id = r.id) AS records,
         (SELECT coalesce(sum(p.staged), 0)::bigint FROM detent.partition p WHERE p.run_id = r.id) AS staged,
         (SELECT coalesce(sum(o.records), 0)::bigint FROM detent.portion o
           WHERE o.run_id = r.id AND o.done_at IS NOT NULL) AS consolidated,
         r.retired, r.error, r.created_at, r.started_at, r.finished_at, r.moved_at
    FROM detent.pipeline_run r;

-- The guards.

CREATE FUNCTION detent.pipeline_run_guard() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
DECLARE
  last record;
BEGIN
  IF TG_OP = 'INSERT' THEN
    RAISE EXCEPTION 'DT002 pipeline_run %: it must begin once, in state created, without partitions', NEW.id USING ERRCODE = 'DT002';
  ELSIF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'DT041 pipeline_run %: it has not ended', OLD.id USING ERRCODE = 'DT041';
  ELSIF (NEW.id, NEW.tenant, NEW.name, NEW.payload, NEW.watermark, NEW.since, NEW.captured_at, NEW.is_full,
      NEW.is_forced, NEW.plan_job_id, NEW.created_at)
    IS DISTINCT FROM (OLD.id, OLD.tenant, OLD.name, OLD.payload, OLD.watermark, OLD.since, OLD.captured_at, OLD.is_full,
      OLD.is_forced, OLD.plan_job_id, OLD.created_at) THEN
    RAISE EXCEPTION 'DT041 pipeline_run %: what it was started for is written once', OLD.id USING ERRCODE = 'DT041';
  ELSIF NOT (
      (OLD.state = 'created' AND NEW.state = 'workers_running')
      OR (OLD.state = 'workers_running' AND NEW.state = 'consolidation_triggered')
      OR (OLD.state = 'consolidation_triggered' AND NEW.state = 'consolidating')
      OR (OLD.state = 'consolidating' AND NEW.state = 'completed')
      OR (OLD.state = 'workers_running' AND NEW.state = 'consolidation_skipped')
      OR (OLD.state = 'consolidation_skipped' AND NEW.state = 'failed')
      OR (OLD.state = 'consolidating' AND NEW.state = 'failed')
      OR (OLD.state = 'consolidation_triggered' AND NEW.state = 'failed')
      OR (OLD.state = 'created' AND NEW.state = 'failed')
      OR (OLD.state = 'consolidation_skipped' AND NEW.state = 'consolidation_triggered')) THEN
    RAISE EXCEPTION 'DT002 pipeline_run % cannot go from % to %', OLD.id, OLD.state, NEW.state USING ERRCODE = 'DT002';
  END IF;
  SELECT l.from_state, l.to_state INTO last FROM detent.transition_log l
   WHERE l.job_id IS NULL AND l.entity = 'pipeline_run' AND l.entity_id = OLD.id::text ORDER BY l.n DESC LIMIT 1;
  IF FOUND AND last.from_state = OLD.state AND last.to_state = NEW.state THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'DT041 pipeline_run % may go from % to % only together with its line in transition_log',
    OLD.id, OLD.state, NEW.state USING ERRCODE = 'DT041';
END $$;

CREATE TRIGGER pipeline_run_begins BEFORE INSERT ON detent.pipeline_run
  FOR EACH ROW WHEN (NEW.state <> 'created' OR NEW.partitions <> 0 OR NEW.parts_ended <> 0)
  EXECUTE FUNCTION detent.pipeline_run_guard();
CREATE TRIGGER pipeline_run_guard BEFORE UPDATE OF state ON detent.pipeline_run
  FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION detent.pipeline_run_guard();
CREATE TRIGGER pipeline_run_frozen
  BEFORE UPDATE OF id, tenant, name, payload, watermark, since, captured_at, is_full, is_forced, plan_job_id, created_at
  ON detent.pipeline_run
  FOR EACH ROW WHEN ((NEW.id, NEW.tenant, NEW.name, NEW.payload, NEW.watermark, NEW.since, NEW.captured_at, NEW.is_full,
      NEW.is_forced, NEW.plan_job_id, NEW.created_at)
    IS DISTINCT FROM (OLD.id, OLD.tenant, OLD.name, OLD.payload, OLD.watermark, OLD.since, OLD.captured_at, OLD.is_full,
      OLD.is_forced, OLD.plan_job_id, OLD.created_at))
  EXECUTE FUNCTION detent.pipeline_run_guard();
CREATE TRIGGER pipeline_run_goes BEFORE DELETE ON detent.pipeline_run
  FOR EACH ROW WHEN (OLD.state NOT IN ('completed', 'failed')) EXECUTE FUNCTION detent.pipeline_run_guard();

CREATE FUNCTION detent.partition_guard() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    RAISE EXCEPTION 'DT002 partition %/%: it must begin once, in state pending, at the first page', NEW.run_id, NEW.n
      USING ERRCODE = 'DT002';
  ELSIF (NEW.run_id, NEW.n, NEW.key, NEW.payload, NEW.job_id)
      IS DISTINCT FROM (OLD.run_id, OLD.n, OLD.key, OLD.payload, OLD.job_id) THEN
    RAISE EXCEPTION 'DT041 partition %/%: run, number, key, payload and job are written once', OLD.run_id, OLD.n
      USING ERRCODE = 'DT041';
  ELSIF NOT (
      (OLD.state = 'pending' AND NEW.state = 'in_progress')
      OR (OLD.state = 'in_progress' AND NEW.state = 'fetching_pages')
      OR (OLD.state = 'fetching_pages' AND NEW.state = 'completed')
      OR (OLD.state = 'fetching_pages' AND NEW.state = 'failed')
      OR (OLD.state = 'in_progress' AND NEW.state = 'failed')
      OR (OLD.state = 'pending' AND NEW.state = 'failed')) THEN
    RAISE EXCEPTION 'DT002 partition %/% cannot go from % to %', OLD.run_id, OLD.n, OLD.state, NEW.state
      USING ERRCODE = 'DT002';
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER partition_begins BEFORE INSERT ON detent.partition
  FOR EACH ROW WHEN (NEW.state <> 'pending' OR NEW.pages <> 0 OR NEW.next_offset <> '0')
  EXECUTE FUNCTION detent.partition_guard();
CREATE TRIGGER partition_guard BEFORE UPDATE OF state, next_offset, last_page, pages ON detent.partition
  FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state OR OLD.state IN ('completed', 'failed'))
  EXECUTE FUNCTION detent.partition_guard();
CREATE TRIGGER partition_frozen BEFORE UPDATE OF run_id, n, key, payload, job_id ON detent.partition
  FOR EACH ROW WHEN ((NEW.run_id, NEW.n, NEW.key, NEW.payload, NEW.job_id)
    IS DISTINCT FROM (OLD.run_id, OLD.n, OLD.key, OLD.payload, OLD.job_id))
  EXECUTE FUNCTION detent.partition_guard();

CREATE FUNCTION detent.watermark_guard() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'DT041 watermark %: it stays', OLD.name USING ERRCODE = 'DT041';
  END IF;
  IF TG_OP = 'UPDATE' THEN
    IF NEW.tenant <> OLD.tenant OR NEW.name <> OLD.name OR NEW.value < OLD.value THEN
      RAISE EXCEPTION 'DT041 watermark %: it moves forward', OLD.name USING ERRCODE = 'DT041';
    END IF;
  END IF;
  IF EXISTS (SELECT 1 FROM detent.pipeline_run r
              WHERE r.id = NEW.run_id AND r.state = 'completed' AND r.tenant = NEW.tenant AND r.watermark = NEW.name
                AND r.captured_at = NEW.value) THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'DT041 watermark %: it stands where a completed run of it captured the time', NEW.name
    USING ERRCODE = 'DT041';
END $$;

CREATE TRIGGER watermark_guard BEFORE INSERT OR UPDATE OR DELETE ON detent.watermark
  FOR EACH ROW EXECUTE FUNCTION detent.watermark_guard();

-- What follows from what.

CREATE FUNCTION detent.pipeline_follows_job() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
DECLARE
  r     detent.pipeline_run;
  fails boolean := NEW.state IN ('failed', 'quarantined', 'cancelled');
  why   text := coalesce(NEW.error, NEW.cancel_reason, 'its job was ' || NEW.state);
BEGIN
  IF NEW.task LIKE 'detent.pipeline.page/%' THEN
    IF NEW.state = 'running' THEN
      UPDATE detent.partition p
         SET tries = p.tries + 1, started_at = coalesce(p.started_at, NEW.leased_at),
             state = CASE p.state WHEN 'pending' THEN 'in_progress' ELSE p.state END
       WHERE p.job_id = NEW.id AND p.state IN ('pending', 'in_progress', 'fetching_pages');
    ELSIF NEW.state = 'pending' THEN
      UPDATE detent.partition p SET tries = p.tries - 1
       WHERE OLD.state = 'running' AND NEW.spared > OLD.spared AND p.job_id = NEW.id AND p.tries > 0;
    ELSIF NEW.state = 'succeeded' THEN
      UPDATE detent.partition p SET state = 'completed', ended_at = NEW.finished_at
       WHERE p.job_id = NEW.id AND p.state = 'fetching_pages';
    ELSE
      UPDATE detent.partition p SET state = 'failed', ended_at = NEW.finished_at, error = why
       WHERE p.job_id = NEW.id AND p.state IN ('pending', 'in_progress', 'fetching_pages');
    END IF;
    RETURN NULL;
  END IF;
  SELECT k.* INTO r FROM detent.pipeline_run k WHERE k.id = NEW.run_id FOR UPDATE;
  IF r.state = 'consolidation_triggered' AND NEW.state = 'running' AND NEW.task LIKE 'detent.pipeline.consolidate/%' THEN
    INSERT INTO detent.transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, at)
      VALUES (r.tenant, 'pipeline_run', r.id::text, r.state, 'consolidating', 'consolidate',
              coalesce((SELECT l.worker FROM detent.lease l WHERE l.id = NEW.lease_id), 'worker'),
              greatest(r.moved_at, NEW.leased_at));
    UPDATE detent.pipeline_run SET state = 'consolidating', moved_at = greatest(moved_at, NEW.leased_at) WHERE id = r.id;
  ELSIF (r.state = 'created' AND r.plan_job_id = NEW.id AND fails)
     OR (r.state IN ('consolidation_triggered', 'consolidating') AND NEW.task LIKE 'detent.pipeline.consolidate/%' AND fails)
     OR (r.state = 'consolidation_skipped' AND NEW.task LIKE 'detent.pipeline.skipped/%'
         AND (fails OR NEW.state = 'succeeded')) THEN
    INSERT INTO detent.transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, reason, at)
      VALUES (r.tenant, 'pipeline_run', r.id::text, r.state, 'failed', 'fail', 'system',
              'job ' || NEW.id || ' is ' || NEW.state, greatest(r.moved_at, NEW.finished_at));
    UPDATE detent.pipeline_run
       SET state = 'failed', finished_at = greatest(moved_at, NEW.finished_at), moved_at = greatest(moved_at, NEW.finished_at),
           error = CASE WHEN r.state = 'consolidation_skipped'
                        THEN parts_failed || ' of ' || partitions || ' partitions failed: nothing was consolidated'
                        ELSE why END
     WHERE id = r.id;
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER pipeline_follows_job AFTER UPDATE OF state ON detent.job
  FOR EACH ROW WHEN (NEW.run_id IS NOT NULL AND NEW.task LIKE 'detent.pipeline.%' AND NEW.state IS DISTINCT FROM OLD.state)
  EXECUTE FUNCTION detent.pipeline_follows_job();

CREATE FUNCTION detent.pipeline_follows_partition() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
BEGIN
  UPDATE detent.pipeline_run r
     SET parts_ended = r.parts_ended + 1, parts_failed = r.parts_failed + (NEW.state = 'failed')::integer,
         moved_at = greatest(r.moved_at, NEW.ended_at)
   WHERE r.id = NEW.run_id;
  RETURN NULL;
END $$;

CREATE TRIGGER pipeline_follows_partition AFTER UPDATE OF state ON detent.partition
  FOR EACH ROW WHEN (NEW.state IS DISTINCT FROM OLD.state AND (NEW.state = 'completed' OR NEW.state = 'failed'))
  EXECUTE FUNCTION detent.pipeline_follows_partition();

CREATE FUNCTION detent.pipeline_fans_in() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
DECLARE
  forced boolean := NEW.parts_failed > NEW.tolerated AND NEW.is_forced;
  goes_on boolean := NEW.parts_failed <= NEW.tolerated OR NEW.is_forced;
  to_state text := CASE WHEN goes_on THEN 'consolidation_triggered' ELSE 'consolidation_skipped' END;
BEGIN
  INSERT INTO detent.transition_log
      (tenant, entity, entity_id, from_state, to_state, trigger, actor, reason, forced, at)
    VALUES (NEW.tenant, 'pipeline_run', NEW.id::text, 'workers_running', to_state,
            CASE WHEN goes_on THEN 'fan_in' ELSE 'skip' END,
            CASE WHEN forced THEN NEW.started_by ELSE 'system' END,
            CASE WHEN forced THEN NEW.reason
                 WHEN NEW.parts_failed > 0 THEN NEW.parts_failed || ' of ' || NEW.partitions || ' partitions failed' END,
            forced, NEW.moved_at);
  UPDATE detent.pipeline_run SET state = to_state WHERE id = NEW.id;
  RETURN NULL;
END $$;

CREATE TRIGGER pipeline_fans_in AFTER UPDATE OF parts_ended, state ON detent.pipeline_run
  FOR EACH ROW WHEN (NEW.state = 'workers_running' AND NEW.parts_ended = NEW.partitions)
  EXECUTE FUNCTION detent.pipeline_fans_in();

-- One job that says that a run was skipped, or failed otherwise; for a consolidation as many as there are portions to share, and no more than were asked for.
CREATE FUNCTION detent.pipeline_enqueues() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
DECLARE
  kind text := CASE NEW.state WHEN 'consolidation_skipped' THEN 'skipped/' WHEN 'failed' THEN 'failed/' ELSE 'consolidate/' END;
  jobs integer := 1;
  ids  bigint[];
BEGIN
  IF NEW.state = 'consolidation_triggered' THEN
    jobs := least(NEW.replicas, greatest(1, ceil((SELECT coalesce(sum(p.staged), 0) FROM detent.partition p
                                                   WHERE p.run_id = NEW.id) / NEW.portion_size::numeric)))::integer;
  END IF;
  ids := ARRAY(SELECT detent.ids_reserve_v1(1) FROM generate_series(1, jobs));
  PERFORM detent.job_enqueue_v1(
    ids, ARRAY(SELECT (random() * 9e18)::bigint FROM generate_series(1, jobs)),
    ARRAY['detent.pipeline.' || kind || NEW.name], ARRAY['{"run_id":' || NEW.id || '}'], ARRAY[NEW.queue],
    ARRAY[NEW.tenant], ARRAY[NEW.priority], '{1000000}', '{false}', '{true}', '{false}',
    p_run_ids => array_fill(NEW.id, ARRAY[jobs]), p_notify => false);
  RETURN NULL;
END $$;

CREATE TRIGGER pipeline_enqueues AFTER UPDATE OF state ON detent.pipeline_run
  FOR EACH ROW WHEN (NEW.state IS DISTINCT FROM OLD.state
    AND (NEW.state = 'consolidation_triggered' OR NEW.state = 'consolidation_skipped'
         OR (NEW.state = 'failed' AND OLD.state <> 'consolidation_skipped')))
  EXECUTE FUNCTION detent.pipeline_enqueues();
