-- scope: document
-- Flag a throughput ratio of a Bow machine to the generation before that is outside 1.15 to 1.53, around the clock ratio
-- of 1.39.
SELECT
    result_id, 'throughput' AS column_name, 'info' AS severity,
    format(
        '{} times the throughput of the generation before, expected 1.15 to 1.53: {} items/s on {}, {} on {}',
        format_rounded(throughput / throughput_before), format_figure(throughput), platform,
        format_figure(throughput_before), platform_before
    ) AS message
FROM rules.generations_before
WHERE family = 'Bow' AND throughput / throughput_before NOT BETWEEN 1.15 AND 1.53
