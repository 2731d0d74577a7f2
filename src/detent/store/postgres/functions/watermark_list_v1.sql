-- watermark_list: watermarks that fit, by tenant and name.
-- takes:   tenant, name (null is any)
-- gives:   their rows
-- locks:   nothing
-- refuses: nothing
CREATE OR REPLACE FUNCTION detent.watermark_list_v1(p_tenant text, p_name text) RETURNS SETOF detent.watermark
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, detent, pg_temp SET jit = off AS $$
BEGIN
  RETURN QUERY
    SELECT w.* FROM detent.watermark w
     WHERE (p_tenant IS NULL OR w.tenant = p_tenant) AND (p_name IS NULL OR w.name = p_name)
     ORDER BY w.tenant COLLATE "C", w.name COLLATE "C";
END $$;
