-- scope: document
-- Flag less than one batch in flight by the median latency. If the latency were a mean, that would be impossible (R01); a
-- median may lie below the mean where some batches are slow. Rows that a page no longer prints are flagged, too.
SELECT
    result_id, 'latency_median_ms' AS column_name, 'warn' AS severity,
    format(
        '{} batches in flight: throughput {} × median latency {} ms / batch {}',
        format_rounded(at_median), format_figure(throughput), format_figure(median_ms), batch_size
    )
    || coalesce(
        format('; {} by the 99th percentile, {} ms', format_rounded(at_p99), format_figure(p99_ms)),
        ''
    ) AS message
FROM rules.median_depths
WHERE below_one_batch
