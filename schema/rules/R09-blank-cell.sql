-- scope: document
-- Flag a blank cell under a header of the printed table.
-- It is only information for a column that may be blank: a row without a variant has none.
SELECT DISTINCT ON (result_id, column_name)
    result_id, column_name,
    if(column_name = 'variant', 'info', 'warn') AS severity,
    format('the cell under the header {} is blank', header) AS message
FROM cells
JOIN rules.published USING (result_id, document_id)
WHERE raw_text = '' AND header_printed
ORDER BY cell_number
