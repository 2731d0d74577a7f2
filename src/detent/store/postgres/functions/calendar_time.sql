-- A time that every calendar has: infinity, and what lies before 1970 or beyond 9000, only a damaged row can have.
CREATE OR REPLACE FUNCTION detent.calendar_time(p_at timestamptz) RETURNS timestamptz
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN p_at IS NULL THEN NULL
              ELSE least(greatest(p_at, '1970-01-01 00:00:00+00'::timestamptz), '9000-01-01 00:00:00+00'::timestamptz) END
$$;
