-- Numbers of which one cannot be above the other, such as two percentiles, but for their rounding.
-- A mean may be above a percentile.
WITH scales AS (
    SELECT unnest([
        ['latency_min_ms', 'latency_median_ms', 'latency_p90_ms', 'latency_p99_ms',
            'latency_max_ms'],
        ['latency_min_ms', 'latency_ms', 'latency_max_ms']
    ]) AS names
)
SELECT DISTINCT
    'contradiction' AS reason, locate_row(low.row_number) AS place,
    format('{} {:.12g} is above {} {:.12g}', low.name, low.value, high.name, high.value) AS message
FROM scales
JOIN stated low ON list_contains(names, low.name)
JOIN stated high USING (run)
WHERE list_position(names, low.name) < list_position(names, high.name)
    AND low.value - high.value > half_unit(low.value) + half_unit(high.value)
