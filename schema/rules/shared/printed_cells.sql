-- The cells of each published row in its own document.
SELECT
    c.result_id, c.cell_number, c.column_name, c.header, c.raw_text, c.value,
    p.document_id, p.table_name, p.place, coalesce(t.header_printed, FALSE) AS header_printed,
    p.row_number, p.task, p.model_printed, p.variant, p.platform, p.framework
FROM cells c
JOIN rules.published p USING (result_id, document_id)
LEFT JOIN detail.source_tables t USING (document_id, table_name)
