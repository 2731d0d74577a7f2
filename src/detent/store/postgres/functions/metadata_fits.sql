-- Whether metadata has each of these members at its top, with one of the values of its JSON array. Text that is no JSON fits nothing.
CREATE OR REPLACE FUNCTION detent.metadata_fits(p_metadata text, p_names text[], p_values text[]) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN p_metadata IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM unnest(p_names, p_values) AS wanted (name, allowed)
     WHERE NOT coalesce(jsonb_typeof(p_metadata::jsonb -> wanted.name) NOT IN ('array', 'object')
                        AND wanted.allowed::jsonb @> (p_metadata::jsonb -> wanted.name), false));
EXCEPTION WHEN data_exception THEN
  RETURN false;
END $$;
