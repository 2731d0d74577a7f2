-- L8, R3: this version knows every recorded state and outcome. Others are reported, never guessed.
SELECT 'job' AS entity, CAST(id AS TEXT) AS entity_id, 'state ' || state AS detail
  FROM detent.job j
 WHERE state NOT IN ({{job.states}})
UNION ALL
SELECT 'execution', CAST(job_id AS TEXT) || '/' || CAST(attempt AS TEXT),
       'outcome ' || outcome || ', next state ' || next_state
  FROM detent.execution e
 WHERE outcome NOT IN ({{execution.outcomes}})
    OR next_state NOT IN ({{job.ends}})
UNION ALL
SELECT 'transition_log', CAST(n AS TEXT),
       'job ' || entity_id || ' from ' || coalesce(from_state, 'nothing') || ' to ' || to_state
  FROM detent.transition_log l
 WHERE entity = 'job'
   AND (to_state NOT IN ({{job.states}})
        OR (trigger <> 'repair' AND coalesce(from_state, '') NOT IN ({{job.states}})))
 ORDER BY 1, 2;
