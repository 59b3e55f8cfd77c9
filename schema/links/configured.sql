-- The public configurations with the row that each is of, by document, table and number; the result of that
-- row, if it was not quarantined; and what the definition of a latency says that it times, and where.
SELECT
    c.*,
    s.document_id IS NOT NULL AS has_row,
    s.result_id,
    l.definition IS NOT NULL AS is_defined,
    l.basis AS latency_basis,
    l.scope AS latency_scope
FROM read.configurations c
LEFT JOIN source_rows s
    ON s.document_id = c.result_document
    AND s.table_name = c.result_table
    AND s.row_number = c.result_row
LEFT JOIN (VALUES {latencies.definition: text, basis, scope}) AS l (definition, basis, scope)
    ON l.definition = c.latency_definition
