-- R2, R3: what is held, seen or counted now has no time far in the future. Such a time would keep a lease, a service or a
-- limit from everybody for as long. Workers hold a lease for a day at most, and callers of the store rarely for longer.
SELECT 'lease' AS entity, CAST(id AS TEXT) AS entity_id, 'expires_at is more than a hundred days ahead' AS detail
  FROM detent_lease WHERE expires_at > :now + 8640000000000
UNION ALL
SELECT 'service', name, 'expires_at is more than two days ahead'
  FROM detent_service WHERE expires_at > :now + 172800000000
UNION ALL
SELECT 'worker', CAST(id AS TEXT), 'seen_at is more than two days ahead'
  FROM detent_worker WHERE seen_at > :now + 172800000000
UNION ALL
SELECT 'rate_limit', key, 'refilled_at is more than two days ahead'
  FROM detent_rate_limit WHERE refilled_at > :now + 172800000000
UNION ALL
SELECT 'schedule', name, 'last_at is more than two days ahead'
  FROM detent_schedule WHERE last_at > :now + 172800000000
UNION ALL
SELECT 'untold', CAST(job_id AS TEXT), 'taken_until is more than two days ahead'
  FROM detent_untold WHERE taken_until > :now + 172800000000
UNION ALL
SELECT 'alert_delivery', CAST(notice_n AS TEXT) || '/' || sink, 'taken_until is more than two days ahead'
  FROM detent_alert_delivery WHERE taken_until > :now + 172800000000
UNION ALL
SELECT 'alert_look', name, 'at is more than two days ahead'
  FROM detent_alert_look WHERE at > :now + 172800000000
UNION ALL
SELECT 'alert', policy || '/' || scope, 'last_at is more than two days ahead'
  FROM detent_alert WHERE last_at > :now + 172800000000
 ORDER BY 1, 2;
