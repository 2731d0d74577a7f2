-- Guards of graphs: what a graph consists of is written once, and stays until retention deletes its job.

CREATE OR REPLACE FUNCTION detent.graph_guard() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, detent, pg_temp AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    RAISE EXCEPTION 'DT041 %: what a graph consists of is written once', TG_TABLE_NAME USING ERRCODE = 'DT041';
  ELSIF TG_TABLE_NAME = 'graph' AND NOT EXISTS (SELECT 1 FROM detent.job j WHERE j.id = (to_jsonb(OLD) ->> 'job_id')::bigint)
     OR TG_TABLE_NAME = 'graph_node' AND NOT EXISTS (SELECT 1 FROM detent.job j WHERE j.id = (to_jsonb(OLD) ->> 'graph_id')::bigint)
     OR TG_TABLE_NAME = 'job_after' AND NOT EXISTS (
       SELECT 1 FROM detent.graph_node n JOIN detent.job j ON j.id = n.graph_id
        WHERE n.job_id = (to_jsonb(OLD) ->> 'job_id')::bigint) THEN
    RETURN OLD;
  END IF;
  RAISE EXCEPTION 'DT041 %: it goes with the job of its graph', TG_TABLE_NAME USING ERRCODE = 'DT041';
END $$;

CREATE OR REPLACE TRIGGER graph_frozen BEFORE UPDATE OF job_id, name, total ON detent.graph
  FOR EACH ROW EXECUTE FUNCTION detent.graph_guard();

CREATE OR REPLACE TRIGGER graph_goes BEFORE DELETE ON detent.graph FOR EACH ROW EXECUTE FUNCTION detent.graph_guard();

CREATE OR REPLACE TRIGGER graph_node_frozen BEFORE UPDATE OF graph_id, name, job_id ON detent.graph_node
  FOR EACH ROW EXECUTE FUNCTION detent.graph_guard();

CREATE OR REPLACE TRIGGER graph_node_goes BEFORE DELETE ON detent.graph_node FOR EACH ROW EXECUTE FUNCTION detent.graph_guard();

CREATE OR REPLACE TRIGGER job_after_frozen BEFORE UPDATE OF job_id, after_id, kind ON detent.job_after
  FOR EACH ROW EXECUTE FUNCTION detent.graph_guard();

CREATE OR REPLACE TRIGGER job_after_goes BEFORE DELETE ON detent.job_after FOR EACH ROW EXECUTE FUNCTION detent.graph_guard();
