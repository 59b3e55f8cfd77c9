-- The table `run_points`: each with its run and its result; none that was quarantined.
SELECT p.* REPLACE (r.run_id AS run_id, s.result_id AS result_id)
FROM read.run_points p
JOIN read.run_documents r USING (document_id)
JOIN source_rows s USING (document_id, table_name, row_number)
WHERE s.result_id IS NOT NULL
