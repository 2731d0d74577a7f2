-- oldest code: 17
-- Finding jobs and changes: newest first by creation, by run, by correlation id, by key; and the record by actor and by time.
--
-- No index on job has a column that a claim or an end changes, so PostgreSQL still updates jobs in place (HOT).

CREATE INDEX job_by_time ON detent.job (created_at, id);
CREATE INDEX job_by_run ON detent.job (run_id, created_at, id) WHERE run_id IS NOT NULL;
CREATE INDEX job_by_correlation ON detent.job (correlation_id, created_at, id) WHERE correlation_id IS NOT NULL;

DROP INDEX detent.job_key_until_claim;
CREATE INDEX job_key_of_job ON detent.job_key (job_id);

CREATE INDEX transition_log_by_time ON detent.transition_log (at, n);
CREATE INDEX transition_log_by_actor ON detent.transition_log (actor, at, n);
