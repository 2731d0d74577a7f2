-- Guards of tokens: what a token may do is written once, it is revoked once, and it stays on record.

CREATE TRIGGER detent_token_frozen BEFORE UPDATE OF id, name, hash, role, tenant, expires_at, created_at, created_by ON detent_token
  FOR EACH ROW WHEN NEW.id IS NOT OLD.id OR NEW.name IS NOT OLD.name OR NEW.hash IS NOT OLD.hash OR NEW.role IS NOT OLD.role OR NEW.tenant IS NOT OLD.tenant OR NEW.expires_at IS NOT OLD.expires_at OR NEW.created_at IS NOT OLD.created_at OR NEW.created_by IS NOT OLD.created_by
BEGIN
  SELECT RAISE(ABORT, 'DT041 token: id, name, hash, role, tenant, expires_at, created_at, created_by are written once');
END;

CREATE TRIGGER detent_token_revoked_for_good BEFORE UPDATE OF revoked_at, revoked_by ON detent_token
  FOR EACH ROW WHEN OLD.revoked_at IS NOT NULL AND (NEW.revoked_at IS NOT OLD.revoked_at OR NEW.revoked_by IS NOT OLD.revoked_by)
BEGIN
  SELECT RAISE(ABORT, 'DT041 token: it is revoked for good');
END;

CREATE TRIGGER detent_token_stays BEFORE DELETE ON detent_token
BEGIN
  SELECT RAISE(ABORT, 'DT041 token: it stays on record; revoke it');
END;

-- differs: REPLACE would delete the old row without firing guards, so an existing token is refused before.
CREATE TRIGGER detent_token_begins BEFORE INSERT ON detent_token
  FOR EACH ROW WHEN EXISTS (SELECT 1 FROM detent_token WHERE id = NEW.id)
    OR EXISTS (SELECT 1 FROM detent_token WHERE hash = NEW.hash)
    OR EXISTS (SELECT 1 FROM detent_token WHERE name = NEW.name AND revoked_at IS NULL AND NEW.revoked_at IS NULL)
BEGIN
  SELECT RAISE(ABORT, 'DT041 token: its id, its hash or its name is taken');
END;
