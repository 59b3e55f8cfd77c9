-- scope: document
-- Flag a latency that falls as the batch grows: a larger batch takes longer. Latencies of an item, and those that R01
-- flags, are excluded. A fall within 2.5 % is what two runs of one program differ by, and one within the printed deviation
-- what its calls differ by, so it is only a warning.
WITH falls AS (
    SELECT
        *,
        value < 0.975 * previous AND value < previous - coalesce(latency_std_ms, 0) AS is_sure
    FROM rules.curves
    JOIN rules.published USING (result_id)
    WHERE figure = 'latency_ms' AND value < previous
)
SELECT
    result_id, 'latency_ms' AS column_name, if(is_sure, 'error', 'warn') AS severity,
    format(
        'latency falls as the batch grows: {} ms at batch {}, {} at {}',
        format_figure(value), batch_size, format_figure(previous), previous_batch
    ) AS message
FROM falls
