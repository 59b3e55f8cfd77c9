-- scope: document
-- Flag a machine that is slower, or has a higher latency, than the generation before it.
SELECT
    result_id, 'throughput' AS column_name, 'warn' AS severity,
    format(
        'slower than the generation before: {} items/s on {}, {} on {} at the same batch {} ({} times)',
        format_figure(throughput), platform, format_figure(throughput_before), platform_before,
        batch_size, format_rounded(throughput / throughput_before)
    ) AS message
FROM rules.generations_before
WHERE throughput < throughput_before
UNION ALL
SELECT
    result_id, 'latency_ms', 'warn',
    format(
        'later than the generation before: {} ms on {}, {} on {} at the same batch {} ({} times)',
        format_figure(latency_ms), platform, format_figure(latency_before), platform_before,
        batch_size, format_rounded(latency_ms / latency_before)
    )
FROM rules.generations_before
WHERE latency_ms > latency_before
