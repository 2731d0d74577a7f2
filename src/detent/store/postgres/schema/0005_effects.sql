-- Effects outside the record: whose word counts on whether one has happened.
--
-- effect_told_by   set before an attempt acts where a crash would leave nobody knowing. `probe`: the task's own probe can
--                  find out afterwards. `marker`: the effect is committed in another database, together with a marker
--                  there. NULL: no attempt has acted in such a way

ALTER TABLE detent.job ADD COLUMN effect_told_by text;
ALTER TABLE detent.job ADD CONSTRAINT job_effect_told_by_known CHECK (effect_told_by = 'probe' OR effect_told_by = 'marker');

CREATE FUNCTION detent.effect_guard() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
BEGIN
  RAISE EXCEPTION 'DT041 job %: effect_told_by is set by the attempt that is in progress, and stays', OLD.id
    USING ERRCODE = 'DT041';
END $$;

CREATE TRIGGER job_effect BEFORE UPDATE OF effect_told_by ON detent.job
  FOR EACH ROW WHEN (NEW.effect_told_by IS DISTINCT FROM OLD.effect_told_by
    AND (NEW.effect_told_by IS NULL OR OLD.state <> 'running' OR NEW.state <> 'running' OR NEW.started_at IS NULL))
  EXECUTE FUNCTION detent.effect_guard();
