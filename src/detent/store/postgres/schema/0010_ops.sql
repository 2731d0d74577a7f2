-- Ops runs: builds, deploys and backups, each a job of the task `ops.run` with one attempt and no dead letter.
--
-- ops_environment   where the runs of a project go; one that is new is made with its first run, and stays
-- ops_run           what a run has besides its job: where it goes, of which revision, and what it was finished with

CREATE TABLE detent.ops_environment (
  id         bigint      NOT NULL,
  project_id text        NOT NULL,
  name       text        NOT NULL,
  created_at timestamptz NOT NULL,
  CONSTRAINT ops_environment_pkey PRIMARY KEY (id),
  CONSTRAINT ops_environment_of_project UNIQUE (project_id, name),
  CONSTRAINT ops_environment_is_named CHECK (project_id <> '' AND name <> '')
);

CREATE TABLE detent.ops_run (
  job_id          bigint NOT NULL,
  environment_id  bigint NOT NULL,
  git_sha         text,
  git_ref         text,
  key             text,
  finish_metadata text,
  CONSTRAINT ops_run_pkey PRIMARY KEY (job_id)
);
CREATE INDEX ops_run_of_environment ON detent.ops_run (environment_id, job_id);

-- Every ops run as it stands. Who stopped it is who asked for that while it was held, or who did it before.
CREATE VIEW detent.ops_runs AS
  SELECT j.id AS job_id, e.project_id, e.id AS env_id, e.name AS env, r.git_sha, r.git_ref,
         CASE j.state WHEN 'pending' THEN 'queued' WHEN 'succeeded' THEN 'success'
           WHEN 'running' THEN CASE WHEN j.started_at IS NULL THEN 'claimed' ELSE 'running' END ELSE j.state END AS state,
         coalesce(x.worker, (SELECT l.worker FROM detent.lease l WHERE l.id = j.lease_id)) AS claimed_by,
         r.key, coalesce(j.metadata, '{}') AS metadata, r.finish_metadata, j.created_at AS queued_at,
         j.leased_at AS started_at, j.started_at AS begun_at, j.finished_at,
         greatest(j.created_at, j.leased_at, j.started_at, j.finished_at, j.cancel_requested_at,
                  (SELECT v.at FROM detent.event v WHERE v.job_id = j.id ORDER BY v.seq DESC LIMIT 1)) AS updated_at,
         x.outcome,
         CASE WHEN j.state = 'cancelled' THEN coalesce(j.cancel_requested_by, (
           SELECT l.actor FROM detent.transition_log l WHERE l.job_id = j.id AND l.to_state = 'cancelled'
            ORDER BY l.n DESC LIMIT 1)) END AS cancelled_by,
         CASE WHEN j.state = 'cancelled' THEN coalesce(j.cancel_reason, (
           SELECT l.reason FROM detent.transition_log l WHERE l.job_id = j.id AND l.to_state = 'cancelled'
            ORDER BY l.n DESC LIMIT 1)) END AS cancel_reason
    FROM detent.ops_run r
    JOIN detent.job j ON j.id = r.job_id
    JOIN detent.ops_environment e ON e.id = r.environment_id
    LEFT JOIN detent.execution x ON x.job_id = j.id AND x.attempt = j.attempt;

-- The moves of lifecycle ops_run, and nothing else; whoever listens to `ops_runs` hears of each.
CREATE FUNCTION detent.ops_run_moves() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
DECLARE
  was    text := detent.ops_state(OLD.state, OLD.started_at);
  now_is text := detent.ops_state(NEW.state, CASE WHEN NEW.attempt = OLD.attempt THEN NEW.started_at END);
BEGIN
  IF was = now_is THEN
    RETURN NEW;
  END IF;
  IF (was, now_is) NOT IN (
       ('queued', 'claimed'), ('claimed', 'running'), ('running', 'success'), ('running', 'failed'), ('running', 'cancelled'),
       ('claimed', 'cancelled'), ('queued', 'cancelled'))
     AND NOT coalesce((SELECT l.trigger = 'repair' FROM detent.transition_log l
                        WHERE l.job_id = OLD.id ORDER BY l.n DESC LIMIT 1), false) THEN
    RAISE EXCEPTION 'DT002 ops_run run-% cannot go from % to %', OLD.id, was, now_is USING ERRCODE = 'DT002';
  END IF;
  PERFORM pg_notify('ops_runs', format('{"run_id":"run-%s","status":"%s"}', OLD.id, now_is));
  RETURN NEW;
END $$;

CREATE TRIGGER job_ops_run BEFORE UPDATE OF state, started_at ON detent.job
  FOR EACH ROW WHEN (NEW.task = 'ops.run') EXECUTE FUNCTION detent.ops_run_moves();

CREATE FUNCTION detent.ops_keep() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
BEGIN
  IF TG_TABLE_NAME = 'ops_run' AND TG_OP = 'DELETE' THEN
    IF NOT EXISTS (SELECT 1 FROM detent.job j WHERE j.id = OLD.job_id) THEN
      RETURN OLD;
    END IF;
  END IF;
  RAISE EXCEPTION 'DT041 % is written once: % refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'DT041';
END $$;

CREATE TRIGGER ops_run_keep BEFORE UPDATE ON detent.ops_run
  FOR EACH ROW WHEN (OLD.finish_metadata IS NOT NULL OR NEW.job_id <> OLD.job_id OR NEW.environment_id <> OLD.environment_id
    OR NEW.git_sha IS DISTINCT FROM OLD.git_sha OR NEW.git_ref IS DISTINCT FROM OLD.git_ref
    OR NEW.key IS DISTINCT FROM OLD.key)
  EXECUTE FUNCTION detent.ops_keep();
CREATE TRIGGER ops_run_goes BEFORE DELETE ON detent.ops_run FOR EACH ROW EXECUTE FUNCTION detent.ops_keep();
CREATE TRIGGER ops_run_keep_all BEFORE TRUNCATE ON detent.ops_run EXECUTE FUNCTION detent.ops_keep();
CREATE TRIGGER ops_environment_keep BEFORE UPDATE OR DELETE ON detent.ops_environment
  FOR EACH ROW EXECUTE FUNCTION detent.ops_keep();
CREATE TRIGGER ops_environment_keep_all BEFORE TRUNCATE ON detent.ops_environment EXECUTE FUNCTION detent.ops_keep();

-- Its words change with this step; the function of this version follows.
DROP FUNCTION IF EXISTS detent.lease_reap_v1(integer);
