-- oldest code: 16
-- The short way in, and leases that are kept as they are.
--
-- From here on the functions have job_enqueue_one. The ids of a lease are read and thrown away a moment later: to compress
-- them takes longer than to write them.

ALTER TABLE detent.lease ALTER COLUMN job_ids SET STORAGE EXTERNAL;
