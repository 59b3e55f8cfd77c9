SELECT
    r.result_id, r.model, r.platform, r.batch_size,
    c.column_name, c.header, c.raw_text, c.value, c.unit, c.factor,
    d.document_id, d.title, d.url, c.locator, d.sha256, d.file
FROM cells c
JOIN results r USING (result_id)
JOIN documents d ON d.document_id = c.document_id
WHERE c.value IS NOT NULL
