-- scope: record
-- Flag a condition that one row alone of its network, dataset or framework has in all documents. Every other value is that
-- of two rows or more, of four or more in all, in two documents or more. What R49 flags is left to it.
SELECT DISTINCT ON (result_id, column_name)
    result_id, column_name, 'warn' AS severity,
    format(
        '{} in this row alone; the {} others with {}, in {} documents, have {}',
        value, other_rows, shared, other_documents, others
    ) AS message
FROM rules.alone
WHERE printed_table IS NULL
    AND (result_id, column_name) NOT IN (
        SELECT (result_id, column_name) FROM rules.alone WHERE printed_table IS NOT NULL
    )
ORDER BY other_rows DESC, shared
