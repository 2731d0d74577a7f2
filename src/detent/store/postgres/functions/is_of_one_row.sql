-- Whether an error of this code can be the fault of the row that was handled. Deadlocks, serialization failures, lock
-- time-outs, a missing table or function, a server without room or one that takes no writes would strike any other row.
CREATE OR REPLACE FUNCTION detent.is_of_one_row(p_code text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
  SELECT left(p_code, 2) NOT IN ('08', '25', '28', '40', '53', '54', '55', '57', '58')
     AND p_code NOT IN ('42P01', '42883', '3F000')
$$;
