-- Jobs by their time of creation, without an index on every job; and those that failed or were cancelled, however few they are.
--
-- job_span       the jobs of one time of creation that share all but the last ten bits of their numbers: from the first to the last
-- unsuccessful   the jobs that are failed or cancelled (dead jobs have their own table)
--
-- All jobs of one call are created at one time and have numbers in a row, so a thousand of them need one or two spans, where
-- an index had a thousand entries. In the order of the key, and within a span by number, jobs are in the order of creation.
-- Two calls at one microsecond have a span each, so that none waits for the other's transaction. Their spans may overlap.

CREATE TABLE detent.job_span (
  created_at timestamptz NOT NULL,
  block      bigint      NOT NULL,
  first_id   bigint      NOT NULL,
  last_id    bigint      NOT NULL,
  CONSTRAINT job_span_pkey PRIMARY KEY (created_at, block, first_id),
  CONSTRAINT job_span_is_within_its_block CHECK (first_id <= last_id AND first_id >> 10 = block AND last_id >> 10 = block)
);

INSERT INTO detent.job_span (created_at, block, first_id, last_id)
  SELECT created_at, id >> 10, min(id), max(id) FROM detent.job GROUP BY created_at, id >> 10;

DROP INDEX detent.job_by_time;

CREATE TABLE detent.unsuccessful (
  state  text   NOT NULL,
  job_id bigint NOT NULL,
  CONSTRAINT unsuccessful_pkey PRIMARY KEY (state, job_id)
);
INSERT INTO detent.unsuccessful (state, job_id) SELECT state, id FROM detent.job WHERE state IN ('failed', 'cancelled');

CREATE OR REPLACE FUNCTION detent.job_counted() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
BEGIN
  INSERT INTO detent.finished_delta (tenant, queue, task, state, jobs)
    SELECT u.tenant, u.queue, u.task, u.state, u.jobs
      FROM (VALUES (OLD.tenant, OLD.queue, OLD.task, OLD.state, -1, OLD.finished_at),
                   (NEW.tenant, NEW.queue, NEW.task, NEW.state, 1, NEW.finished_at)) u (tenant, queue, task, state, jobs, at)
     WHERE u.at IS NOT NULL;
  IF OLD.state IN ('failed', 'cancelled') THEN
    DELETE FROM detent.unsuccessful WHERE state = OLD.state AND job_id = OLD.id;
  END IF;
  IF NEW.state IN ('failed', 'cancelled') THEN
    INSERT INTO detent.unsuccessful (state, job_id) VALUES (NEW.state, NEW.id) ON CONFLICT DO NOTHING;
  END IF;
  RETURN NULL;
END $$;
