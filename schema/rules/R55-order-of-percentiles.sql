-- scope: document
-- Flag two percentiles of one latency of which the lower one is above the higher one.
WITH scales AS (
    SELECT unnest([
        [
            'latency_min_ms', 'latency_median_ms', 'latency_p90_ms', 'latency_p95_ms',
            'latency_p99_ms', 'latency_max_ms'
        ],
        ['latency_per_token_ms', 'latency_per_token_p99_ms'],
        ['ttft_ms', 'ttft_p99_ms'],
        ['tpot_ms', 'tpot_p99_ms']
    ]) AS names
)
SELECT DISTINCT ON (result_id)
    result_id, high.metric AS column_name, 'warn' AS severity,
    format(
        '{} of {} is below {} of {}',
        high.metric, format_figure(high.value), low.metric, format_figure(low.value)
    ) AS message
FROM scales
JOIN figures low ON list_contains(names, low.metric)
JOIN figures high USING (result_id)
JOIN results r USING (result_id)
WHERE list_position(names, low.metric) < list_position(names, high.metric)
    AND low.value > high.value AND r.origin = 'published'
ORDER BY result_id, list_position(names, high.metric), list_position(names, low.metric)
