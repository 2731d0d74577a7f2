-- oldest code: 17
-- Retention of what belongs to no job: lines of the log and old horizons may go, by rules that the database enforces.
--
-- A line without a job may go if it is below the newest horizon and nobody needs it: a newer line of the same entity is below
-- the horizon too, or the run it tells of is gone. A horizon may go if it is below the newest one and was recorded before it.
-- The index makes the newest horizon one step for every guard that asks for it.

CREATE INDEX horizon_before ON detent.horizon (before);

CREATE OR REPLACE FUNCTION detent.keep() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
DECLARE
  newest timestamptz;
BEGIN
  IF TG_OP = 'DELETE' AND TG_TABLE_NAME IN ('execution', 'event', 'transition_log') THEN
    IF OLD.job_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM detent.job j WHERE j.id = OLD.job_id) THEN
      RETURN OLD;
    END IF;
  END IF;
  IF TG_OP = 'DELETE' AND TG_TABLE_NAME = 'transition_log' THEN
    newest := (SELECT max(h.before) FROM detent.horizon h);
    IF OLD.job_id IS NULL AND OLD.at < newest AND (CASE OLD.entity
         WHEN 'batch_run' THEN NOT EXISTS (SELECT 1 FROM detent.batch_run b WHERE b.id = OLD.entity_id::bigint)
         WHEN 'pipeline_run' THEN NOT EXISTS (SELECT 1 FROM detent.pipeline_run r WHERE r.id = OLD.entity_id::bigint)
         ELSE EXISTS (SELECT 1 FROM detent.transition_log l
                       WHERE l.job_id IS NULL AND l.entity = OLD.entity AND l.entity_id = OLD.entity_id
                         AND l.n > OLD.n AND l.at < newest)
       END) THEN
      RETURN OLD;
    END IF;
  ELSIF TG_OP = 'DELETE' AND TG_TABLE_NAME = 'horizon' THEN
    newest := (SELECT max(h.before) FROM detent.horizon h);
    IF OLD.before < newest AND OLD.at < newest THEN
      RETURN OLD;
    END IF;
  END IF;
  RAISE EXCEPTION 'DT041 % is append-only: % refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'DT041';
END $$;
