-- operation_step: look at the next jobs of an operation, and do it to those that fit.
-- takes:   the operation, how many jobs to look at; what it was asked for, as its own row says
-- gives:   the operation as it stands then; nothing where there is none
-- locks:   its row, then the jobs as the verb does
-- refuses: job by job, as the verb does; what it refused is counted
CREATE OR REPLACE FUNCTION detent.operation_step_v1(
  p_id bigint, p_limit integer, p_state text, p_task text, p_queue text, p_tenant text, p_to_queue text,
  p_to_priority smallint, p_metadata text
) RETURNS SETOF detent.operation
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  t      timestamptz := detent.clock();
  op     detent.operation;
  looked bigint[];
  ids    bigint[];
  yes    integer := 0;
  no     integer := 0;
BEGIN
  SELECT o.* INTO op FROM detent.operation o WHERE o.id = p_id FOR UPDATE;
  IF op.state = 'running' THEN
    looked := ARRAY(SELECT j.id FROM detent.job j WHERE j.id > op.after_id AND j.id <= op.until_id ORDER BY j.id LIMIT p_limit);
    ids := ARRAY(
      SELECT j.id FROM detent.job j
       WHERE j.id = ANY (looked)
         AND (p_state IS NULL OR j.state = p_state) AND (p_task IS NULL OR j.task = p_task)
         AND (p_queue IS NULL OR j.queue = p_queue) AND (p_tenant IS NULL OR j.tenant = p_tenant)
         AND NOT (op.action = 'cancel' AND (j.state = 'cancelled' OR j.state = 'running' AND j.cancel_requested_at IS NOT NULL)));
    IF op.action = 'retry' THEN
      SELECT count(*) FILTER (WHERE r.from_state IN ('failed', 'quarantined', 'cancelled')),
             count(*) FILTER (WHERE r.from_state IN ('running', 'succeeded') OR r.from_state IS NULL
                                 OR r.from_state LIKE 'run:%' OR r.from_state LIKE 'part:%'
                                 OR r.from_state LIKE 'ops_run %' AND r.from_state <> 'ops_run queued')
        INTO yes, no FROM detent.job_retry_v1(ids, op.actor, op.reason, false) r;
    ELSIF op.action = 'discard' THEN
      SELECT count(*) FILTER (WHERE r.from_state IN ('failed', 'quarantined')),
             count(*) FILTER (WHERE r.from_state IN ('pending', 'running', 'succeeded') OR r.from_state IS NULL
                                 OR r.from_state LIKE 'ops_run %' AND r.from_state <> 'ops_run cancelled')
        INTO yes, no FROM detent.job_discard_v1(ids, op.actor, op.reason) r;
    ELSIF op.action = 'cancel' THEN
      SELECT count(*) FILTER (WHERE r.state IS NOT NULL AND r.committed_attempt IS NULL AND NOT r.refused),
             count(*) FILTER (WHERE r.state IS NULL OR r.committed_attempt IS NOT NULL OR r.refused)
        INTO yes, no FROM detent.job_cancel_v1(ids, op.actor, op.reason) r;
    ELSE
      SELECT count(*) FILTER (WHERE r.moved), count(*) FILTER (WHERE r.from_state IS DISTINCT FROM 'pending')
        INTO yes, no FROM detent.job_move_v1(ids, p_to_queue, p_to_priority, op.actor, op.reason, p_metadata) r;
    END IF;
    op.state := CASE WHEN cardinality(looked) < p_limit THEN 'done' ELSE 'running' END;
    UPDATE detent.operation o
       SET after_id = CASE WHEN op.state = 'done' THEN o.until_id ELSE looked[p_limit] END,
           looked_at = o.looked_at + cardinality(looked), changed = o.changed + yes, refused = o.refused + no,
           state = op.state, finished_at = CASE WHEN op.state = 'done' THEN t END
     WHERE o.id = p_id;
    IF op.state = 'done' THEN
      INSERT INTO detent.transition_log (entity, entity_id, from_state, to_state, trigger, actor, at)
        VALUES ('operation', p_id::text, 'running', 'done', 'complete', 'system', t);
    END IF;
  END IF;
  RETURN QUERY SELECT o.* FROM detent.operation o WHERE o.id = p_id;
END $$;
