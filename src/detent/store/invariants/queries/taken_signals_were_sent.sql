-- Every signal that a step has taken was sent before; the copy of such a step has the signal too.
SELECT 'workflow_step' AS entity, CAST(s.job_id AS TEXT) || '/' || s.path AS entity_id,
       CASE WHEN g.job_id IS NULL THEN 'it took signal ' || s.signal_seq || ', which is not there'
            ELSE 'it took signal ' || s.signal_seq || ' before that was sent' END AS detail
  FROM detent.workflow_step s
  LEFT JOIN detent.workflow_signal g ON g.job_id = s.job_id AND g.name = s.signal_name AND g.seq = s.signal_seq
 WHERE s.signal_seq IS NOT NULL AND (g.job_id IS NULL OR s.attempt > 0 AND g.sent_at > s.done_at)
 ORDER BY s.job_id, s.generation, s.path;
