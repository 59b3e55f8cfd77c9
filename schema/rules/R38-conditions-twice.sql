-- scope: document
-- Flag two figures of a table under the same conditions, in every column that says what was run.
-- Either what tells them apart is in no column, or one condition is mistaken. Times among the
-- conditions are what was measured, and tell nothing apart.
WITH figures AS (
    UNPIVOT rules.published ON throughput, latency_ms INTO NAME column_name VALUE figure
), compared AS (
    SELECT
        *,
        coalesce(
            regexp_replace(conditions, '\d+\.\d+(?:e[+-]?\d+)? (?:ms|s)\b', '', 'g'), ''
        ) AS words
    FROM figures
), alike AS (
    SELECT
        result_id, column_name,
        count(*) OVER same AS rows,
        min(figure) OVER same AS low,
        max(figure) OVER same AS high
    FROM compared
    WINDOW same AS (
        PARTITION BY
            document_id, table_name, task, model_printed, variant, dataset_printed, platform, chip,
            chip_count, sdk_version, framework, precision_printed, micro_batch_size, item,
            power_scope, latency_basis, batch_size, input_tokens, output_tokens, column_name, words
    )
)
SELECT
    result_id, column_name, 'warn' AS severity,
    format(
        '{} rows of this table print {} to {} under the same conditions: find in the source what'
        || ' tells them apart, which is in no column, or which condition is mistaken',
        rows, format_figure(low), format_figure(high)
    ) AS message
FROM alike
WHERE low < high
