-- scope: document
-- Flag more than 1.4 times the throughput that another framework reaches in the same row. Rows whose name hides another
-- network (R20) are not the same. Of several rows of a framework the fastest counts.
WITH printed_rows AS (
    SELECT
        result_id, place, framework, batch_size, throughput,
        min(place) OVER (
            PARTITION BY
                document_id, table_name, task, model_printed, variant, dataset_printed, platform,
                sdk_version, batch_size, precision_printed, item, network
        ) AS printed_row
    FROM rules.published
    WHERE throughput > 0 AND batch_size IS NOT NULL AND framework IS NOT NULL
), fastest AS (
    FROM printed_rows
    QUALIFY row_number() OVER (PARTITION BY printed_row, framework ORDER BY throughput DESC, place) = 1
), pairs AS (
    SELECT
        f.result_id, f.throughput, f.framework, f.batch_size,
        slower.throughput AS other_throughput, slower.framework AS other_framework
    FROM fastest f
    JOIN fastest slower
        ON slower.printed_row = f.printed_row AND f.throughput > 1.4 * slower.throughput
    QUALIFY row_number() OVER (PARTITION BY f.result_id ORDER BY slower.throughput DESC, slower.place) = 1
)
SELECT
    result_id, 'throughput' AS column_name, 'info' AS severity,
    format(
        '{} times the throughput of {} in the same row: {} items/s with {}, {} with {} at batch {}',
        format_rounded(throughput / other_throughput), other_framework, format_figure(throughput),
        framework, format_figure(other_throughput), other_framework, batch_size
    ) AS message
FROM pairs
