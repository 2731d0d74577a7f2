-- The last time in which no worker showed that it lives, if it ended less than `p_grace` seconds before `t`; else nulls. A gap
-- that goes on until now, and was not noted yet, ends now.
CREATE OR REPLACE FUNCTION detent.unwatched(
  t timestamptz, p_grace double precision, OUT from_at timestamptz, OUT to_at timestamptz
)
LANGUAGE plpgsql STABLE AS $$
BEGIN
  SELECT CASE WHEN w.watched_at < t - interval '5 seconds' THEN w.watched_at ELSE w.gap_from END,
         CASE WHEN w.watched_at < t - interval '5 seconds' THEN t ELSE w.gap_to END
    INTO from_at, to_at FROM detent.watch w;
  IF p_grace IS NULL OR to_at <= t - make_interval(secs => p_grace) THEN
    from_at := NULL;
    to_at := NULL;
  END IF;
END $$;
