-- scope: document
-- Flag a blank cell under a header of the printed table. A variant may be blank: a row without one has none.
SELECT DISTINCT ON (result_id, column_name)
    result_id, column_name, 'warn' AS severity,
    format('the cell under the header {} is blank', header) AS message
FROM cells
JOIN rules.published USING (result_id, document_id)
WHERE raw_text = '' AND header_printed AND column_name <> 'variant'
ORDER BY cell_number
