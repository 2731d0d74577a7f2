-- page_store: the records of a page and the next offset of its partition, together.
-- takes:   run and number of the partition, job, attempt, the offset of the page and the next one (null: none follows),
--          keys and data of its records, no key twice
-- gives:   what was found instead of the holder; whether it was stored, and where the partition stands (null: there is
--          no such partition of this job)
-- locks:   the job, then the partition
-- refuses: whoever is not the holder. A page of another offset changes nothing
CREATE OR REPLACE FUNCTION detent.page_store_v1(
  p_run_id bigint, p_n integer, p_job_id bigint, p_attempt integer, p_offset text, p_next text, p_keys text[], p_datas text[]
) RETURNS TABLE (instead text, stored boolean, next_offset text, last_page boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  t     timestamptz := detent.clock();
  j     detent.job;
  p     detent.partition;
  fresh bigint;
  total bigint := cardinality(p_keys);
BEGIN
  stored := false;
  SELECT k.* INTO j FROM detent.job k WHERE k.id = p_job_id FOR UPDATE;
  instead := detent.holder_lost(j, p_attempt, t);
  IF instead IS NULL THEN
    SELECT k.* INTO p FROM detent.partition k WHERE k.run_id = p_run_id AND k.n = p_n AND k.job_id = p_job_id FOR UPDATE;
    next_offset := p.next_offset;
    last_page := p.last_page;
    IF p.next_offset = p_offset AND NOT p.last_page AND p.state IN ('in_progress', 'fetching_pages') THEN
      t := detent.job_now(j, t);
      IF j.started_at IS NULL THEN
        UPDATE detent.job SET started_at = t WHERE id = p_job_id;
      END IF;
      INSERT INTO detent.staged (run_id, key, data, partition_n)
        SELECT p_run_id, u.key, u.data, p_n FROM unnest(p_keys, p_datas) AS u (key, data)
        ON CONFLICT (run_id, key) DO NOTHING;
      GET DIAGNOSTICS fresh = ROW_COUNT;
      IF fresh < total THEN
        UPDATE detent.staged s SET data = u.data, partition_n = p_n
          FROM unnest(p_keys, p_datas) AS u (key, data)
         WHERE s.run_id = p_run_id AND s.key = u.key AND (s.data, s.partition_n) IS DISTINCT FROM (u.data, p_n);
      END IF;
      UPDATE detent.partition
         SET next_offset = coalesce(p_next, p_offset), last_page = p_next IS NULL, pages = pages + 1,
             records = records + total, staged = staged + fresh, tries = 0, paged_at = t,
             state = CASE state WHEN 'in_progress' THEN 'fetching_pages' ELSE state END
       WHERE run_id = p_run_id AND n = p_n;
      stored := true;
      next_offset := coalesce(p_next, p_offset);
      last_page := p_next IS NULL;
    END IF;
  END IF;
  RETURN NEXT;
END $$;
