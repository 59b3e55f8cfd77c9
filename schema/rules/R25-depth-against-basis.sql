-- scope: document
-- Flag 1.4 or more batches in flight where the configuration times one batch. The script times a batch from its first input
-- to its last output and does not say how many others are under way. The figures say that there were some, so the latency
-- is not that of a machine with one batch.
SELECT
    result_id, 'latency_basis' AS column_name, 'info' AS severity,
    format(
        '{} batches in flight: throughput {} × latency {} ms / batch {}; '
        || 'the configuration times one batch and does not say how many are in flight',
        format_rounded(in_flight), format_figure(throughput), format_figure(latency_ms), batch_size
    ) AS message
FROM rules.published
WHERE latency_basis = 'per-batch' AND in_flight >= 1.4
