-- R3: every row about a job has its job, and every queue row its lane. Keys and leases may outlive their jobs.
SELECT 'ready' AS entity, CAST(r.job_id AS TEXT) AS entity_id, 'there is no job ' || r.job_id AS detail
  FROM detent.ready r WHERE NOT EXISTS (SELECT 1 FROM detent.job j WHERE j.id = r.job_id)
UNION ALL
SELECT 'waiting', CAST(w.job_id AS TEXT), 'there is no job ' || w.job_id
  FROM detent.waiting w WHERE NOT EXISTS (SELECT 1 FROM detent.job j WHERE j.id = w.job_id)
UNION ALL
SELECT 'dead', CAST(d.job_id AS TEXT), 'there is no job ' || d.job_id
  FROM detent.dead d WHERE NOT EXISTS (SELECT 1 FROM detent.job j WHERE j.id = d.job_id)
UNION ALL
SELECT 'execution', CAST(e.job_id AS TEXT) || '/' || CAST(e.attempt AS TEXT), 'there is no job ' || e.job_id
  FROM detent.execution e WHERE NOT EXISTS (SELECT 1 FROM detent.job j WHERE j.id = e.job_id)
UNION ALL
SELECT 'event', CAST(v.job_id AS TEXT) || '/' || CAST(v.seq AS TEXT), 'there is no job ' || v.job_id
  FROM detent.event v WHERE NOT EXISTS (SELECT 1 FROM detent.job j WHERE j.id = v.job_id)
UNION ALL
SELECT 'transition_log', CAST(l.n AS TEXT), 'there is no job ' || l.job_id
  FROM detent.transition_log l WHERE l.job_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM detent.job j WHERE j.id = l.job_id)
UNION ALL
SELECT 'workflow', CAST(f.job_id AS TEXT), 'there is no job ' || f.job_id
  FROM detent.workflow f WHERE NOT EXISTS (SELECT 1 FROM detent.job j WHERE j.id = f.job_id)
UNION ALL
SELECT 'workflow_step', CAST(s.job_id AS TEXT) || '/' || s.path, 'there is no job ' || s.job_id
  FROM detent.workflow_step s WHERE NOT EXISTS (SELECT 1 FROM detent.job j WHERE j.id = s.job_id)
UNION ALL
SELECT 'workflow_step_begun', CAST(b.job_id AS TEXT) || '/' || b.path, 'there is no job ' || b.job_id
  FROM detent.workflow_step_begun b WHERE NOT EXISTS (SELECT 1 FROM detent.job j WHERE j.id = b.job_id)
UNION ALL
SELECT 'workflow_wait', CAST(x.job_id AS TEXT) || '/' || CAST(x.n AS TEXT), 'there is no job ' || x.job_id
  FROM detent.workflow_wait x WHERE NOT EXISTS (SELECT 1 FROM detent.job j WHERE j.id = x.job_id)
UNION ALL
SELECT 'workflow_signal', CAST(g.job_id AS TEXT) || '/' || CAST(g.seq AS TEXT), 'there is no job ' || g.job_id
  FROM detent.workflow_signal g WHERE NOT EXISTS (SELECT 1 FROM detent.job j WHERE j.id = g.job_id)
UNION ALL
SELECT 'tree_cancel', CAST(t.n AS TEXT), 'there is no job ' || t.job_id
  FROM detent.tree_cancel t WHERE NOT EXISTS (SELECT 1 FROM detent.job j WHERE j.id = t.job_id)
UNION ALL
SELECT 'child_group', CAST(c.parent_id AS TEXT) || '/' || c.path, 'there is no job ' || c.parent_id
  FROM detent.child_group c WHERE NOT EXISTS (SELECT 1 FROM detent.job j WHERE j.id = c.parent_id)
 ORDER BY 1, 2;
