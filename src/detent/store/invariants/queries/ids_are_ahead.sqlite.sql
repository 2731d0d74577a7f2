-- J1, R3: the next number is above all numbers in use. Otherwise inserts fail.
-- differs: PostgreSQL has a sequence for each numbered table; here SQLite counts them by itself.
WITH counted (rows, next, used) AS (
    SELECT count(*), max(next), (SELECT max(coalesce((SELECT max(id) FROM detent_job), 0), coalesce((SELECT max(id) FROM detent_lease), 0)))
      FROM detent_ids
  )
SELECT 'sequence' AS entity, 'ids' AS entity_id,
       CASE WHEN rows = 1 THEN 'its next number is ' || next || ', and ' || used || ' is in use'
            ELSE 'it has ' || rows || ' rows' END AS detail
  FROM counted
 WHERE rows <> 1 OR next <= used;
