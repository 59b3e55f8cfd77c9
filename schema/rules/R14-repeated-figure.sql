-- scope: document
-- Flag a figure that two unrelated rows of a document (another model or task) print in the same
-- column.
-- Only figures of at least three significant digits count: shorter ones coincide by chance.
SELECT
    a.result_id, a.column_name, 'info' AS severity,
    format('{} is also printed by an unrelated row: {}', a.raw_text, arg_min(b.spot, b.place))
    || if(count(*) > 1, format(' and {} more', count(*) - 1), '') AS message
FROM rules.printed_figures a
JOIN rules.printed_figures b USING (document_id, column_name, figure)
WHERE a.digits >= 3 AND (a.model_printed, a.task) IS DISTINCT FROM (b.model_printed, b.task)
GROUP BY a.result_id, a.column_name, a.raw_text
