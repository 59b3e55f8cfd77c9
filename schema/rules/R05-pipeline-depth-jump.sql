-- scope: record
-- Flag a jump of the batches in flight along a curve, to more than 1.5 times as many or fewer: pipeline depth or way of
-- timing is not the same. Latencies of an item are excluded, as are rows that R01 or R24 flags: after such a row the next
-- one is normal.
SELECT
    result_id, 'latency_ms' AS column_name, 'warn' AS severity,
    format(
        '{} batches in flight at batch {}, {} at {}',
        format_rounded(value), batch_size, format_rounded(previous), previous_batch
    ) AS message
FROM rules.curves
WHERE figure = 'in_flight' AND is_unlike_depth(value / previous)
