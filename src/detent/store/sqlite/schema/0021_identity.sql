-- oldest code: 17
-- The identity of the database, and the version of each lifecycle that is attached to a table.
--
-- `identity` makes the effect keys of this database differ from those of every other database. A row holds for the jobs and
-- runs with ids from `first_id` on, so a new identity does not change the key of a job that exists. Rows are only added.
-- `lifecycle` keeps the version of each attached lifecycle, so that an older program cannot take a newer one back.

CREATE TABLE detent_identity (
  n         INTEGER NOT NULL,
  identity  TEXT    NOT NULL,
  first_id  INTEGER NOT NULL,
  made_by   TEXT    NOT NULL,
  reason    TEXT,
  made_at   INTEGER NOT NULL,
  CONSTRAINT identity_pkey PRIMARY KEY (n),
  CONSTRAINT identity_is_long CHECK (length(identity) = 32)
);
INSERT INTO detent_identity (n, identity, first_id, made_by, made_at)
VALUES (1, lower(hex(randomblob(16))), 0, 'migrate', CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER));

CREATE TRIGGER detent_identity_keep BEFORE UPDATE ON detent_identity
BEGIN
  SELECT RAISE(ABORT, 'DT041 identity is append-only: UPDATE refused');
END;
CREATE TRIGGER detent_identity_goes BEFORE DELETE ON detent_identity
BEGIN
  SELECT RAISE(ABORT, 'DT041 identity is append-only: DELETE refused');
END;
CREATE TRIGGER detent_identity_begins BEFORE INSERT ON detent_identity
  WHEN EXISTS (SELECT 1 FROM detent_identity WHERE n >= NEW.n OR first_id >= NEW.first_id)
BEGIN
  SELECT RAISE(ABORT, 'DT041 identity: numbers and first ids only grow');
END;

CREATE TABLE detent_lifecycle (
  name        TEXT    NOT NULL,
  version     INTEGER NOT NULL,
  table_name  TEXT    NOT NULL,
  attached_at INTEGER NOT NULL,
  CONSTRAINT lifecycle_pkey PRIMARY KEY (name)
);
