-- R2, R3: no lease, service, worker, limit, schedule or alert has a time far in the future. Such a time would block it until
-- then. Workers hold a lease for a day at most, and callers of the store rarely for longer.
SELECT 'lease' AS entity, CAST(id AS TEXT) AS entity_id, 'expires_at is more than a hundred days ahead' AS detail
  FROM detent.lease WHERE expires_at > detent.clock() + interval '100 days'
UNION ALL
SELECT 'service', name, 'expires_at is more than two days ahead'
  FROM detent.service WHERE expires_at > detent.clock() + interval '2 days'
UNION ALL
SELECT 'worker', CAST(id AS TEXT), 'seen_at is more than two days ahead'
  FROM detent.worker WHERE seen_at > detent.clock() + interval '2 days'
UNION ALL
SELECT 'rate_limit', key, 'refilled_at is more than two days ahead'
  FROM detent.rate_limit WHERE refilled_at > detent.clock() + interval '2 days'
UNION ALL
SELECT 'schedule', name, 'last_at is more than two days ahead'
  FROM detent.schedule WHERE last_at > detent.clock() + interval '2 days'
UNION ALL
SELECT 'failure_report', CAST(job_id AS TEXT), 'taken_until is more than two days ahead'
  FROM detent.failure_report WHERE taken_until > detent.clock() + interval '2 days'
UNION ALL
SELECT 'alert_delivery', CAST(notice_n AS TEXT) || '/' || sink, 'taken_until is more than two days ahead'
  FROM detent.alert_delivery WHERE taken_until > detent.clock() + interval '2 days'
UNION ALL
SELECT 'alert_look', name, 'at is more than two days ahead'
  FROM detent.alert_look WHERE at > detent.clock() + interval '2 days'
UNION ALL
SELECT 'alert', policy || '/' || scope, 'last_at is more than two days ahead'
  FROM detent.alert WHERE last_at > detent.clock() + interval '2 days'
 ORDER BY 1, 2;
