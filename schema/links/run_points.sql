-- The table `run_points`: each with its run and its result; none that was quarantined.
SELECT p.*, r.run_id, r.result_id
FROM read.run_points p
JOIN source_rows s USING (document_id, table_name, row_number)
JOIN results r ON r.result_id = s.result_id
