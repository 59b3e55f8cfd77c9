-- The rows of the record.
SELECT * EXCLUDE (run) FROM sides WHERE run IS NULL
