-- What a stored error has in common with others of its kind: the name of the exception's class, or the first words where it
-- names none. The line that counts is the first one after the last frame of a traceback that is not indented.
CREATE OR REPLACE FUNCTION detent.error_kind(p_error text) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
  told text := regexp_replace(btrim(coalesce(p_error, ''), E' \t\n\r\v\f'), '^.*\n(?:  File "|  \|   File)[^\n]*', '');
  line text := coalesce(substring(told FROM '(?:^|\n)(?:  \| )?(\S[^\n]*)'), '');
BEGIN
  RETURN coalesce(substring(line FROM '^([A-Za-z_][A-Za-z0-9_.]*)(?::|$)'), left(line, 80));
END $$;
