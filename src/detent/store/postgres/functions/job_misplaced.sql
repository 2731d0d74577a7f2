-- The refusal of a move of a pending job whose queue, priority or due time was changed by hand.
CREATE OR REPLACE FUNCTION detent.job_misplaced(p_job_id bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'DT041 job % does not stand where its queue, priority and due time say; `detent repair` puts it right', p_job_id
    USING ERRCODE = 'DT041';
END $$;
