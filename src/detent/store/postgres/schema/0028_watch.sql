-- Times in which no worker showed that it lives.
--
-- watched_at   when a worker last did, to the second; null before the first
-- gap_from, gap_to   the last time of more than five seconds in which none did: all were down, the database was away, or its
--              clock jumped forward. A lease that ran out in it may belong to a living holder, which gets a grace to renew it

CREATE TABLE detent.watch (
  one        boolean     NOT NULL DEFAULT true,
  watched_at timestamptz,
  gap_from   timestamptz,
  gap_to     timestamptz,
  CONSTRAINT watch_pkey PRIMARY KEY (one),
  CONSTRAINT watch_is_one_row CHECK (one)
);
INSERT INTO detent.watch (one) VALUES (true);

DROP FUNCTION IF EXISTS detent.lease_reap_v1(integer, text);
DROP FUNCTION IF EXISTS detent.lease_reap_each_v1(integer, bigint[]);
