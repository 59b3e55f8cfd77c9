-- scope: document
-- Flag a throughput that falls by more than 5 % as the batch grows.
SELECT
    result_id, 'throughput' AS column_name, 'warn' AS severity,
    format(
        'throughput falls by {} % as the batch grows: {} items/s at batch {}, {} at {}',
        format_rounded(100 * (1 - value / previous)), format_figure(value), batch_size,
        format_figure(previous), previous_batch
    ) AS message
FROM rules.curves
WHERE figure = 'throughput' AND value < 0.95 * previous
