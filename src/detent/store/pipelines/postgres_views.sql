-- Every pipeline run, with the sums of its partitions and portions.
CREATE OR REPLACE VIEW detent.pipeline_runs AS
  SELECT r.id, r.tenant, r.name, r.payload, r.watermark, r.since, r.captured_at, r.is_full, r.is_forced, r.started_by,
         r.reason, r.retires, r.state, r.tolerated, r.partitions, r.parts_ended, r.parts_failed,
         (SELECT coalesce(sum(p.pages), 0)::bigint FROM detent.partition p WHERE p.run_id = r.id) AS pages,
         (SELECT coalesce(sum(p.records), 0)::bigint FROM detent.partition p WHERE p.run_id = r.id) AS records,
         (SELECT coalesce(sum(p.staged), 0)::bigint FROM detent.partition p WHERE p.run_id = r.id) AS staged,
         (SELECT coalesce(sum(o.records), 0)::bigint FROM detent.portion o
           WHERE o.run_id = r.id AND o.done_at IS NOT NULL) AS consolidated,
         r.retired, r.error, r.created_at, r.started_at, r.finished_at, r.moved_at
    FROM detent.pipeline_run r;
