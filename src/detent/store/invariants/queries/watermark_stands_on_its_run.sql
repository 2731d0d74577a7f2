-- R2, P5: a watermark is the time that its run captured. That run is completed, and no completed run captured a later one.
SELECT 'watermark' AS entity, w.tenant || '/' || w.name AS entity_id,
       CASE WHEN r.id IS NULL THEN 'there is no run ' || w.run_id
            ELSE 'run ' || w.run_id || ' is ' || r.state || ', and it is not what that run captured' END AS detail
  FROM detent.watermark w LEFT JOIN detent.pipeline_run r ON r.id = w.run_id
 WHERE r.id IS NULL OR r.state <> 'completed' OR r.captured_at <> w.value OR r.watermark <> w.name OR r.tenant <> w.tenant
UNION ALL
SELECT 'pipeline_run', CAST(r.id AS TEXT), 'it is completed, and its watermark stands before it'
  FROM detent.pipeline_run r
 WHERE r.state = 'completed'
   AND NOT EXISTS (SELECT 1 FROM detent.watermark w
                    WHERE w.tenant = r.tenant AND w.name = r.watermark AND w.value >= r.captured_at)
 ORDER BY 1, 2;
