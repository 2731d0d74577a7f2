-- oldest code: 17
-- declaration  what programs have declared in code, as fingerprints: one row for each change, the newest has the highest n.
--              An empty fingerprint: it was removed. A program whose declaration is in an older row runs older code

CREATE TABLE detent.declaration (
  kind        text        NOT NULL,
  name        text        NOT NULL,
  n           integer     NOT NULL,
  fingerprint text        NOT NULL,
  at          timestamptz NOT NULL,
  CONSTRAINT declaration_pkey PRIMARY KEY (kind, name, n),
  CONSTRAINT declaration_kind_known CHECK (kind IN ('schedule', 'limit')),
  CONSTRAINT declaration_is_numbered CHECK (n > 0)
);
