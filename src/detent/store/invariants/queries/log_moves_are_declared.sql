-- L2, E4, R2: every move of a job in the log is declared for its trigger, belongs to its job, and is marked if it was forced.
WITH declared (source, target, name) AS (VALUES
    {{job.logged_moves}}
  )
SELECT 'transition_log' AS entity, CAST(l.n AS TEXT) AS entity_id,
       'job ' || l.entity_id || ' from ' || coalesce(l.from_state, 'nothing') || ' to ' || l.to_state
       || ' by ' || l.trigger || CASE WHEN l.forced THEN ', forced' ELSE '' END AS detail
  FROM detent.transition_log l
 WHERE (l.entity = 'job' OR l.job_id IS NOT NULL)
   AND (l.entity <> 'job' OR l.job_id IS NULL OR l.entity_id <> CAST(l.job_id AS TEXT)
        OR (l.forced = true) <> (l.trigger = 'force')
        OR CASE l.trigger
             WHEN 'repair' THEN l.to_state NOT IN ({{job.states}})
             WHEN 'move' THEN coalesce(l.from_state, '') <> 'pending' OR l.to_state <> 'pending'
             WHEN 'fork' THEN coalesce(l.from_state, '') <> 'pending' OR l.to_state <> 'pending' OR l.attempt <> 0
             WHEN 'request_cancel' THEN coalesce(l.from_state, '') NOT IN ('pending', 'running') OR l.to_state <> l.from_state
             ELSE NOT (l.trigger = 'rewind' AND coalesce(l.from_state, '') = 'pending' AND l.to_state = 'pending')
              AND NOT EXISTS (SELECT 1 FROM declared d
                               WHERE d.source = l.from_state AND d.target = l.to_state AND d.name = l.trigger)
           END)
 ORDER BY l.n;
