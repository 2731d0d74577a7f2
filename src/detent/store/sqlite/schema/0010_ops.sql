-- Ops runs: builds, deploys and backups, each a job of the task `ops.run` with one attempt and no dead letter.
--
-- ops_environment   where the runs of a project go; one that is new is made with its first run, and stays
-- ops_run           what a run has besides its job: where it goes, of which revision, and what it was finished with

CREATE TABLE detent_ops_environment (
  id         INTEGER NOT NULL,
  project_id TEXT    NOT NULL,
  name       TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  CONSTRAINT ops_environment_pkey PRIMARY KEY (id),
  CONSTRAINT ops_environment_of_project UNIQUE (project_id, name),
  CONSTRAINT ops_environment_is_named CHECK (project_id <> '' AND name <> '')
) STRICT;

CREATE TABLE detent_ops_run (
  job_id          INTEGER NOT NULL,
  environment_id  INTEGER NOT NULL,
  git_sha         TEXT,
  git_ref         TEXT,
  key             TEXT,
  finish_metadata TEXT,
  CONSTRAINT ops_run_pkey PRIMARY KEY (job_id)
) STRICT;
CREATE INDEX detent_ops_run_of_environment ON detent_ops_run (environment_id, job_id);

-- Every ops run as it stands. Who stopped it is who asked for that while it was held, or who did it before.
CREATE VIEW detent_ops_runs AS
  SELECT j.id AS job_id, e.project_id, e.id AS env_id, e.name AS env, r.git_sha, r.git_ref,
         CASE j.state WHEN 'pending' THEN 'queued' WHEN 'succeeded' THEN 'success'
           WHEN 'running' THEN CASE WHEN j.started_at IS NULL THEN 'claimed' ELSE 'running' END ELSE j.state END AS state,
         coalesce(x.worker, (SELECT l.worker FROM detent_lease l WHERE l.id = j.lease_id)) AS claimed_by,
         r.key, coalesce(j.metadata, '{}') AS metadata, r.finish_metadata, j.created_at AS queued_at,
         j.leased_at AS started_at, j.started_at AS begun_at, j.finished_at,
         max(j.created_at, coalesce(j.leased_at, 0), coalesce(j.started_at, 0), coalesce(j.finished_at, 0),
             coalesce(j.cancel_requested_at, 0), coalesce((
               SELECT v.at FROM detent_event v WHERE v.job_id = j.id ORDER BY v.seq DESC LIMIT 1), 0)) AS updated_at,
         x.outcome,
         CASE WHEN j.state = 'cancelled' THEN coalesce(j.cancel_requested_by, (
           SELECT l.actor FROM detent_transition_log l WHERE l.job_id = j.id AND l.to_state = 'cancelled'
            ORDER BY l.n DESC LIMIT 1)) END AS cancelled_by,
         CASE WHEN j.state = 'cancelled' THEN coalesce(j.cancel_reason, (
           SELECT l.reason FROM detent_transition_log l WHERE l.job_id = j.id AND l.to_state = 'cancelled'
            ORDER BY l.n DESC LIMIT 1)) END AS cancel_reason
    FROM detent_ops_run r
    JOIN detent_job j ON j.id = r.job_id
    JOIN detent_ops_environment e ON e.id = r.environment_id
    LEFT JOIN detent_execution x ON x.job_id = j.id AND x.attempt = j.attempt;

-- The moves of lifecycle ops_run, and nothing else.
CREATE TRIGGER detent_job_ops_run BEFORE UPDATE OF state, started_at ON detent_job
  FOR EACH ROW WHEN NEW.task = 'ops.run' AND NEW.state <> OLD.state AND (
      (OLD.state = 'pending' AND NEW.state IN ('running', 'cancelled'))
   OR (OLD.state = 'running' AND NEW.state = 'cancelled')
   OR (OLD.state = 'running' AND OLD.started_at IS NOT NULL AND NEW.state IN ('succeeded', 'failed'))
   OR (SELECT trigger FROM detent_transition_log WHERE job_id = OLD.id ORDER BY n DESC LIMIT 1) = 'repair'
  ) IS NOT TRUE
BEGIN
  SELECT RAISE(ABORT, 'DT002 ops_run: it cannot go from its state to that one');
END;

CREATE TRIGGER detent_ops_run_keep BEFORE UPDATE ON detent_ops_run
  FOR EACH ROW WHEN OLD.finish_metadata IS NOT NULL OR NEW.job_id <> OLD.job_id OR NEW.environment_id <> OLD.environment_id
    OR NEW.git_sha IS NOT OLD.git_sha OR NEW.git_ref IS NOT OLD.git_ref OR NEW.key IS NOT OLD.key
BEGIN
  SELECT RAISE(ABORT, 'DT041 ops_run is written once: UPDATE refused');
END;
CREATE TRIGGER detent_ops_run_goes BEFORE DELETE ON detent_ops_run
  FOR EACH ROW WHEN EXISTS (SELECT 1 FROM detent_job WHERE id = OLD.job_id)
BEGIN
  SELECT RAISE(ABORT, 'DT041 ops_run is written once: DELETE refused');
END;
-- differs: a REPLACE would delete the old row without asking, so an id that is there is refused before.
CREATE TRIGGER detent_ops_run_begins BEFORE INSERT ON detent_ops_run
  FOR EACH ROW WHEN EXISTS (SELECT 1 FROM detent_ops_run WHERE job_id = NEW.job_id)
BEGIN
  SELECT RAISE(ABORT, 'DT041 ops_run is written once: REPLACE refused');
END;
CREATE TRIGGER detent_ops_environment_keep BEFORE UPDATE ON detent_ops_environment
BEGIN
  SELECT RAISE(ABORT, 'DT041 ops_environment is written once: UPDATE refused');
END;
CREATE TRIGGER detent_ops_environment_goes BEFORE DELETE ON detent_ops_environment
BEGIN
  SELECT RAISE(ABORT, 'DT041 ops_environment is written once: DELETE refused');
END;
CREATE TRIGGER detent_ops_environment_begins BEFORE INSERT ON detent_ops_environment
  FOR EACH ROW WHEN EXISTS (SELECT 1 FROM detent_ops_environment
    WHERE id = NEW.id OR (project_id = NEW.project_id AND name = NEW.name))
BEGIN
  SELECT RAISE(ABORT, 'DT041 ops_environment is written once: REPLACE refused');
END;
