-- Where the figures of a row were printed.
SELECT
    column_name, header, raw_text, value, unit, factor, document_id, title, source_url,
    source_locator, locator, locator_in
FROM provenance
WHERE result_id = $result_id
ORDER BY cell_number
LIMIT 60
