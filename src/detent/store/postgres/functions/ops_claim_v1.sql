-- ops_claim: hand the ops run that was queued first to one caller.
-- takes:   the lease, the worker's name
-- gives:   the run, or no row
-- locks:   what job_claim does; of expired leases of ops runs, and the jobs under them, those that nobody else holds
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.ops_claim_v1(p_lease_id bigint, p_worker text)
RETURNS TABLE (job_id bigint, attempt integer, project_id text, env_id bigint, env text, git_sha text, git_ref text, metadata text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
#variable_conflict use_column
DECLARE
  held record;
BEGIN
  -- Where shell scripts are the only workers, nobody else would. No process of theirs has to be met first after an outage.
  PERFORM detent.lease_reap_v2(100, 'ops.run');
  PERFORM detent.job_expire_v1(100);
  SELECT c.* INTO held
    FROM detent.job_claim_each_v1(p_lease_id, p_worker, NULL, ARRAY['ops.run'], 1, 300, NULL, NULL, '{}') c
   WHERE c.job_id IS NOT NULL;
  IF held.job_id IS NULL THEN
    RETURN;
  END IF;
  PERFORM detent.event_append_v1(ARRAY[held.job_id], ARRAY[NULL::integer], ARRAY['info'], ARRAY['Run claimed by worker'],
                                 ARRAY[format('{"worker_id":%s}', to_json(p_worker))], ARRAY[NULL::text]);
  RETURN QUERY
    SELECT held.job_id, held.attempt, e.project_id, e.id, e.name, r.git_sha, r.git_ref, coalesce(held.metadata, '{}')
      FROM detent.ops_run r JOIN detent.ops_environment e ON e.id = r.environment_id
     WHERE r.job_id = held.job_id;
END $$;
