-- scope: record
-- Flag a figure of four digits or more that another table prints with one other condition: an earlier page, or a page of
-- another machine. All other conditions that both state are the same, so one of the two rows names a condition that is not
-- its own. What R52 flags is left to it.
WITH figures AS (
    SELECT
        f.column_name AS figure_name, f.raw_text, f.figure, f.spot,
        concat_ws(' ', p.document_id, p.table_name) AS printed_table, p.*
    FROM rules.printed_figures f
    JOIN rules.published p USING (place)
    WHERE f.digits >= 4
), pairs AS (
    SELECT
        f.result_id, f.raw_text, o.document_id, o.spot,
        list_filter([
            {column_name: 'task', own: f.task, other: o.task},
            {column_name: 'model_printed', own: f.model_printed, other: o.model_printed},
            {column_name: 'variant', own: f.variant, other: o.variant},
            {column_name: 'dataset_printed', own: f.dataset_printed, other: o.dataset_printed},
            {column_name: 'platform', own: f.platform, other: o.platform},
            {column_name: 'sdk_version', own: f.sdk_version, other: o.sdk_version},
            {column_name: 'framework', own: f.framework, other: o.framework},
            {column_name: 'precision_printed', own: f.precision_printed, other: o.precision_printed},
            {column_name: 'item', own: f.item, other: o.item},
            {column_name: 'batch_size', own: f.batch_size::VARCHAR, other: o.batch_size::VARCHAR}
        ], lambda pair: pair.own <> pair.other) AS differences
    FROM figures f
    JOIN figures o USING (figure_name, figure)
    WHERE f.printed_table <> o.printed_table
        AND f.result_id NOT IN (SELECT result_id FROM rules.against_config)
        AND o.result_id NOT IN (SELECT result_id FROM rules.against_config)
)
SELECT DISTINCT ON (result_id, column_name)
    result_id, differences[1].column_name AS column_name, 'warn' AS severity,
    format(
        '{}, where {} of {} prints {} for the same figure, {}, and no other condition differs',
        differences[1].own, spot, document_id, differences[1].other, raw_text
    ) AS message
FROM pairs
WHERE len(differences) = 1
ORDER BY document_id, spot
