-- How many jobs may begin now as far as the rate goes, with what is left of the next one.
CREATE OR REPLACE FUNCTION detent.limit_tokens(l detent.rate_limit, t timestamptz) RETURNS double precision
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN least(l.burst, l.tokens
    + coalesce(l.rate, 0) / l.per * greatest(extract(epoch FROM t - l.refilled_at)::double precision, 0));
END $$;
