-- J1, R3: the next number of every sequence is above all numbers in use. Otherwise inserts fail.
-- differs: SQLite has one row of numbers, and counts the others by itself.
WITH counted (name, next, used) AS (
    SELECT 'id_seq', s.last_value + s.is_called::integer,
           greatest((SELECT max(id) FROM detent.job), (SELECT max(id) FROM detent.lease))
      FROM detent.id_seq s
    UNION ALL
    SELECT 'lane_id_seq', s.last_value + s.is_called::integer, (SELECT max(id & 4294967295) FROM detent.lane)
      FROM detent.lane_id_seq s
    UNION ALL
    SELECT 'transition_log_n_seq', s.last_value + s.is_called::integer, (SELECT max(n) FROM detent.transition_log)
      FROM detent.transition_log_n_seq s
    UNION ALL
    SELECT 'horizon_n_seq', s.last_value + s.is_called::integer, (SELECT max(n) FROM detent.horizon)
      FROM detent.horizon_n_seq s
    UNION ALL
    SELECT 'alert_notice_n_seq', s.last_value + s.is_called::integer, (SELECT max(n) FROM detent.alert_notice)
      FROM detent.alert_notice_n_seq s
  )
SELECT 'sequence' AS entity, name AS entity_id, 'its next number is ' || next || ', and ' || used || ' is in use' AS detail
  FROM counted
 WHERE next <= used
 ORDER BY 1, 2;
