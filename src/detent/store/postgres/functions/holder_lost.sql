-- The fence: why this caller is not the holder of (job, attempt); null where it is.
CREATE OR REPLACE FUNCTION detent.holder_lost(j detent.job, p_attempt integer, t timestamptz) RETURNS text
LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF j.id IS NULL THEN
    RETURN 'no such job';
  ELSIF j.state <> 'running' THEN
    RETURN 'the job is ' || j.state;
  ELSIF j.attempt <> p_attempt THEN
    RETURN 'attempt ' || j.attempt || ' is current';
  ELSIF NOT EXISTS (SELECT 1 FROM detent.lease l WHERE l.id = j.lease_id AND l.expires_at > t) THEN
    RETURN 'its lease has expired';
  END IF;
  RETURN NULL;
END $$;
