-- M1, R3: the rates of an hour, by minute or as a whole, add up to the figures of that hour.
SELECT 'transition_rate' AS entity,
       to_char(f.hour AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') || '/' || f.to_state || '/' || f.outcome AS entity_id,
       'it says ' || CAST(sum(f.rated) AS TEXT) || ' moves in ' || CAST(sum(f.rated_us) AS TEXT) || ' microseconds, and the figures say '
       || CAST(sum(f.counted) AS TEXT) || ' in ' || CAST(sum(f.counted_us) AS TEXT) AS detail
  FROM (SELECT hour, to_state, outcome, 0 AS rated, 0 AS rated_us, moves AS counted, ran_us AS counted_us
          FROM detent.transition_hour h
        UNION ALL
        SELECT hour, 'running', '', 0, 0, moves, waited_us FROM detent.transition_hour h WHERE outcome <> ''
        UNION ALL
        SELECT date_bin('1 hour', at, 'epoch'), to_state, outcome, moves, us, 0, 0 FROM detent.transition_rate r) f
 GROUP BY f.hour, f.to_state, f.outcome HAVING sum(f.rated) <> sum(f.counted) OR sum(f.rated_us) <> sum(f.counted_us)
 ORDER BY 1, 2;
