-- Whether the lifecycle of jobs declares this move for this trigger. The list is filled in from lifecycle/library.py.
CREATE OR REPLACE FUNCTION detent.is_job_move(p_trigger text, p_from text, p_to text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT p_trigger || ' ' || p_from || ' ' || p_to = ANY ('{{{job.triggers}}}'::text[])
$$;
