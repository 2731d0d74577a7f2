-- B3, B8, R2: the counts of a run are those of its targets by state, its open actions and its open mismatches.
WITH counted AS (
    SELECT b.id, sum(CASE WHEN g.run_id IS NOT NULL THEN 1 ELSE 0 END) AS total,
           sum(CASE WHEN g.changed IS NOT NULL THEN 1 ELSE 0 END) AS previewed,
           sum(CASE WHEN g.preview_error IS NOT NULL THEN 1 ELSE 0 END) AS preview_failed,
           sum(CASE WHEN NOT g.changed THEN 1 ELSE 0 END) AS unchanged,
           sum(CASE WHEN g.state = 'queued' THEN 1 ELSE 0 END) AS queued,
           sum(CASE WHEN g.state = 'applying' THEN 1 ELSE 0 END) AS applying,
           sum(CASE WHEN g.state = 'applied' THEN 1 ELSE 0 END) AS applied,
           sum(CASE WHEN g.state = 'failed' THEN 1 ELSE 0 END) AS failed,
           sum(CASE WHEN g.state = 'rolled_back' THEN 1 ELSE 0 END) AS rolled_back,
           sum(CASE WHEN g.revert_state = 'reverting' THEN 1 ELSE 0 END) AS reverting,
           sum(CASE WHEN g.revert_state = 'failed' THEN 1 ELSE 0 END) AS revert_failed,
           sum(CASE WHEN g.conflict IS NOT NULL THEN 1 ELSE 0 END) AS conflicts
      FROM detent.batch_run b LEFT JOIN detent.target g ON g.run_id = b.id
     GROUP BY b.id
  ), open_actions AS (
    SELECT run_id, count(*) AS n FROM detent.batch_action a WHERE a.done_at IS NULL GROUP BY a.run_id
  ), open_mismatches AS (
    SELECT run_id, count(*) AS n FROM detent.mismatch m WHERE m.resolved_at IS NULL GROUP BY m.run_id
  ), found AS (
    SELECT c.*, coalesce(a.n, 0) AS outstanding, coalesce(m.n, 0) AS mismatches
      FROM counted c LEFT JOIN open_actions a ON a.run_id = c.id LEFT JOIN open_mismatches m ON m.run_id = c.id
  )
SELECT 'batch_run' AS entity, CAST(b.id AS TEXT) AS entity_id,
       'total, previewed, preview_failed, unchanged, queued, applying, applied,' ||
       ' failed, rolled_back, reverting, revert_failed, conflicts, outstanding, mismatches: '
       || b.total || ', ' || b.previewed || ', ' || b.preview_failed || ', ' || b.unchanged
       || ', ' || b.queued || ', ' || b.applying || ', ' || b.applied || ', ' || b.failed
       || ', ' || b.rolled_back || ', ' || b.reverting || ', ' || b.revert_failed
       || ', ' || b.conflicts || ', ' || b.outstanding || ', ' || b.mismatches
       || '; there are '
       || c.total || ', ' || c.previewed || ', ' || c.preview_failed || ', ' || c.unchanged
       || ', ' || c.queued || ', ' || c.applying || ', ' || c.applied || ', ' || c.failed
       || ', ' || c.rolled_back || ', ' || c.reverting || ', ' || c.revert_failed
       || ', ' || c.conflicts || ', ' || c.outstanding || ', ' || c.mismatches AS detail
  FROM detent.batch_run b JOIN found c ON c.id = b.id
 WHERE b.total <> c.total OR b.previewed <> c.previewed OR b.preview_failed <> c.preview_failed OR b.unchanged <> c.unchanged
    OR b.queued <> c.queued OR b.applying <> c.applying OR b.applied <> c.applied OR b.failed <> c.failed
    OR b.rolled_back <> c.rolled_back OR b.reverting <> c.reverting OR b.revert_failed <> c.revert_failed OR b.outstanding <> c.outstanding
    OR b.mismatches <> c.mismatches OR b.conflicts <> c.conflicts
 ORDER BY b.id;
