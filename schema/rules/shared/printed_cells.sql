-- The cells of each published row in its own document, with what names the row (`spot`).
SELECT
    c.result_id, c.cell_number, c.column_name, c.header, c.raw_text, c.value,
    p.document_id, p.table_name, p.place, coalesce(t.header_printed, FALSE) AS header_printed,
    p.task, p.model_printed, p.variant, p.platform, p.framework,
    format('{} row {} ({}, {})', p.table_name, p.row_number, p.model_printed, p.platform) AS spot
FROM cells c
JOIN rules.published p USING (result_id, document_id)
LEFT JOIN detail.source_tables t USING (document_id, table_name)
