-- oldest code: 17
-- Finding jobs and changes: newest first by creation, by run, by correlation id, by key; and the record by actor and by time.

CREATE INDEX detent_job_by_time ON detent_job (created_at, id);
CREATE INDEX detent_job_by_run ON detent_job (run_id, created_at, id) WHERE run_id IS NOT NULL;
CREATE INDEX detent_job_by_correlation ON detent_job (correlation_id, created_at, id) WHERE correlation_id IS NOT NULL;

DROP INDEX detent_job_key_until_claim;
CREATE INDEX detent_job_key_of_job ON detent_job_key (job_id);

CREATE INDEX detent_transition_log_by_time ON detent_transition_log (at, n);
CREATE INDEX detent_transition_log_by_actor ON detent_transition_log (actor, at, n);
