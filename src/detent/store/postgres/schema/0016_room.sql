-- Room for a job's second version beside its first.
--
-- A claim changes many jobs of the same pages in one transaction, so their old versions cannot make room for the new ones.
-- With 30 % left free, half of the new versions went to other pages, with an entry in every index; with half left free, one
-- in ten does. Pages that are full stay as they are.

ALTER TABLE detent.job SET (fillfactor = 50);
