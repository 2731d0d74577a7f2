-- job_drop: delete these finished jobs with all their records.
-- takes:   the jobs, the horizon that they must be past, who
-- gives:   how many went
-- locks:   the jobs that go; whatever others hold stays for a later pass
-- refuses: nothing; what may not go stays
CREATE OR REPLACE FUNCTION detent.job_drop_v1(p_ids bigint[], p_before timestamptz, p_actor text) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  old bigint[];
BEGIN
  INSERT INTO detent.horizon (before, actor, at)
    SELECT p_before, p_actor, detent.clock() WHERE NOT EXISTS (SELECT 1 FROM detent.horizon h WHERE h.before >= p_before);
  old := ARRAY(
    SELECT j.id FROM detent.job j WHERE j.id = ANY (p_ids) AND detent.job_may_go(j.finished_at, j.run_id, p_before) AND j.finished_at >= j.created_at
     ORDER BY j.id FOR UPDATE SKIP LOCKED);
  PERFORM detent.jobs_go(old);
  RETURN cardinality(old);
END $$;
