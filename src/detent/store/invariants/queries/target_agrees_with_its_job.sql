-- B1, B3, B8, R2: the state of a target fits its jobs, and it was tried no more often than they allow.
SELECT 'target' AS entity, g.run_id || '/' || g.n AS entity_id,
       'it is ' || g.state || ', the job that applies it is ' || j.state || ' after ' || j.attempt || ' attempts' AS detail
  FROM detent.target g JOIN detent.job j ON j.id = g.apply_job_id
 WHERE CASE j.state WHEN 'pending' THEN g.state <> 'queued' WHEN 'running' THEN g.state <> 'applying'
                    WHEN 'succeeded' THEN g.state NOT IN ('applied', 'rolled_back') ELSE g.state <> 'failed' END
    OR (j.attempt - j.spared > j.attempts_max + CASE WHEN j.effect_evidence IS NULL THEN 0 ELSE 1 END AND g.state <> 'failed')
UNION ALL
SELECT 'target', g.run_id || '/' || g.n,
       'it is ' || g.state || ', ' || coalesce(g.revert_state, 'nothing') || ', the job that reverts it is ' || j.state
  FROM detent.target g JOIN detent.job j ON j.id = g.revert_job_id
 WHERE CASE j.state WHEN 'pending' THEN coalesce(g.revert_state, '') <> 'reverting' WHEN 'running' THEN coalesce(g.revert_state, '') <> 'reverting'
                    WHEN 'succeeded' THEN g.state <> 'rolled_back' ELSE coalesce(g.revert_state, '') <> 'failed' END
 ORDER BY 1, 2;
