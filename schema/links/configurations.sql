-- The table `configurations`: each with what its latency times, and the result of its row; null for
-- a row that was quarantined.
SELECT c.* REPLACE (s.result_id AS result_id, l.basis AS latency_basis)
FROM read.configurations c
LEFT JOIN source_rows s
    ON s.document_id = c.result_document
    AND s.table_name = c.result_table
    AND s.row_number = c.result_row
LEFT JOIN known_latency l ON l.definition = c.latency_definition
