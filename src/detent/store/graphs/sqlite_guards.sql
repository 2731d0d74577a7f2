-- Guards of graphs: what a graph consists of is written once, and stays until retention deletes its job.

CREATE TRIGGER detent_graph_frozen BEFORE UPDATE OF job_id, name, total ON detent_graph
BEGIN
  SELECT RAISE(ABORT, 'DT041 graph: what a graph consists of is written once');
END;

CREATE TRIGGER detent_graph_goes BEFORE DELETE ON detent_graph WHEN EXISTS (SELECT 1 FROM detent_job WHERE id = OLD.job_id)
BEGIN
  SELECT RAISE(ABORT, 'DT041 graph: it goes with its job');
END;

CREATE TRIGGER detent_graph_node_frozen BEFORE UPDATE OF graph_id, name, job_id ON detent_graph_node
BEGIN
  SELECT RAISE(ABORT, 'DT041 graph_node: what a graph consists of is written once');
END;

CREATE TRIGGER detent_graph_node_goes BEFORE DELETE ON detent_graph_node WHEN EXISTS (SELECT 1 FROM detent_job WHERE id = OLD.graph_id)
BEGIN
  SELECT RAISE(ABORT, 'DT041 graph_node: it goes with the job of its graph');
END;

CREATE TRIGGER detent_job_after_frozen BEFORE UPDATE OF job_id, after_id, kind ON detent_job_after
BEGIN
  SELECT RAISE(ABORT, 'DT041 job_after: what a graph consists of is written once');
END;

CREATE TRIGGER detent_job_after_goes BEFORE DELETE ON detent_job_after
  WHEN EXISTS (SELECT 1 FROM detent_graph_node n JOIN detent_job j ON j.id = n.graph_id WHERE n.job_id = OLD.job_id)
BEGIN
  SELECT RAISE(ABORT, 'DT041 job_after: it goes with the job of its graph');
END;
