-- The façade for any language: ops runs as functions and views of a schema of their own.
CREATE SCHEMA IF NOT EXISTS ops;
COMMENT ON SCHEMA ops IS 'Detent: ops runs, over the jobs in schema detent.';
