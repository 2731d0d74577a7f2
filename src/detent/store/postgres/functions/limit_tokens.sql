-- How many jobs may begin now as far as the rate goes, with what is left of the next one. A rate or time that a CHECK would
-- refuse gives nothing back: it must not stop the claims of other jobs.
CREATE OR REPLACE FUNCTION detent.limit_tokens(l detent.rate_limit, t timestamptz) RETURNS double precision
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN least(l.burst, l.tokens
    + CASE WHEN l.rate > 0 AND l.per > 0 AND isfinite(l.refilled_at)
           THEN l.rate / l.per * greatest(extract(epoch FROM t - l.refilled_at)::double precision, 0) ELSE 0 END);
END $$;
