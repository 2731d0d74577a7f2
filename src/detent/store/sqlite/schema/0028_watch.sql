-- Times in which no worker showed that it lives.
--
-- watched_at   when a worker last did, to the second; null before the first
-- gap_from, gap_to   the last time of more than five seconds in which none did: all were down, the machine stood still, or its
--              clock jumped forward. A lease that ran out in it may belong to a living holder, which gets a grace to renew it

CREATE TABLE detent_watch (
  one        INTEGER NOT NULL DEFAULT 1,
  watched_at INTEGER,
  gap_from   INTEGER,
  gap_to     INTEGER,
  CONSTRAINT watch_pkey PRIMARY KEY (one),
  CONSTRAINT watch_is_one_row CHECK (one)
) STRICT;
INSERT INTO detent_watch (one) VALUES (1);
