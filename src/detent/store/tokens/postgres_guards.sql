-- Guards of tokens: what a token may do is written once, it is revoked once, and it stays on record.

CREATE OR REPLACE FUNCTION detent.token_refuse() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'DT041 token % stays on record; revoke it', OLD.name USING ERRCODE = 'DT041';
  ELSIF OLD.revoked_at IS NOT NULL AND (NEW.revoked_at IS DISTINCT FROM OLD.revoked_at OR NEW.revoked_by IS DISTINCT FROM OLD.revoked_by) THEN
    RAISE EXCEPTION 'DT041 token % is revoked for good', OLD.name USING ERRCODE = 'DT041';
  END IF;
  RAISE EXCEPTION 'DT041 token %: id, name, hash, role, tenant, expires_at, created_at, created_by are written once', OLD.name
    USING ERRCODE = 'DT041';
END $$;

CREATE OR REPLACE TRIGGER token_frozen BEFORE UPDATE OF id, name, hash, role, tenant, expires_at, created_at, created_by ON detent.token
  FOR EACH ROW WHEN (NEW.id IS DISTINCT FROM OLD.id OR NEW.name IS DISTINCT FROM OLD.name OR NEW.hash IS DISTINCT FROM OLD.hash OR NEW.role IS DISTINCT FROM OLD.role OR NEW.tenant IS DISTINCT FROM OLD.tenant OR NEW.expires_at IS DISTINCT FROM OLD.expires_at OR NEW.created_at IS DISTINCT FROM OLD.created_at OR NEW.created_by IS DISTINCT FROM OLD.created_by) EXECUTE FUNCTION detent.token_refuse();

CREATE OR REPLACE TRIGGER token_revoked_for_good BEFORE UPDATE OF revoked_at, revoked_by ON detent.token
  FOR EACH ROW WHEN (OLD.revoked_at IS NOT NULL AND (NEW.revoked_at IS DISTINCT FROM OLD.revoked_at OR NEW.revoked_by IS DISTINCT FROM OLD.revoked_by)) EXECUTE FUNCTION detent.token_refuse();

CREATE OR REPLACE TRIGGER token_stays BEFORE DELETE ON detent.token FOR EACH ROW EXECUTE FUNCTION detent.token_refuse();
