-- declaration_put: a program declares something in its code, or it was removed.
-- takes:   what kind of thing, its name, the declaration's fingerprint (empty: it was removed), and whether a declaration
--          that another one has replaced counts again
-- gives:   `new` (it counts from now on), `same` (it counts already) or `replaced` (another one has replaced it)
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
