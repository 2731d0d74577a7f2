-- alert_deliveries: what was told of an alert, and what is to be told.
-- takes:   the policy and what of it, how many
-- gives:   each notice at each sink, the newest first
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.alert_deliveries_v1(p_policy text, p_scope text, p_limit integer)
RETURNS TABLE (sink text, kind text, episode integer, message text, at timestamptz, state text, tries integer,
               due_at timestamptz, sent_at timestamptz, error text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    SELECT d.sink, a.kind, a.episode, a.message, a.at, d.state, d.tries, d.due_at, d.sent_at, d.error
      FROM detent.alert_notice a JOIN detent.alert_delivery d ON d.notice_n = a.n
     WHERE a.policy = p_policy AND a.scope = p_scope ORDER BY a.n DESC, d.sink COLLATE "C" LIMIT p_limit;
END $$;
