-- R2, P3: the counts of a run are those of its partitions: all, ended and failed.
WITH counted AS (
    SELECT r.id, r.partitions, r.parts_ended, r.parts_failed, count(p.run_id) AS parts,
           sum(CASE WHEN p.state IN ('completed', 'failed') THEN 1 ELSE 0 END) AS ended,
           sum(CASE WHEN p.state = 'failed' THEN 1 ELSE 0 END) AS failed
      FROM detent.pipeline_run r LEFT JOIN detent.partition p ON p.run_id = r.id
     GROUP BY r.id, r.partitions, r.parts_ended, r.parts_failed
  )
SELECT 'pipeline_run' AS entity, CAST(id AS TEXT) AS entity_id,
       partitions || ' partitions, ' || parts_ended || ' ended, ' || parts_failed || ' failed; there are ' || parts
       || ', ' || ended || ' and ' || failed AS detail
  FROM counted
 WHERE partitions <> parts OR parts_ended <> ended OR parts_failed <> failed
 ORDER BY id;
