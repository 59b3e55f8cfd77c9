-- scope: document
-- Flag less than one batch in flight, which is impossible if the latency is that of a batch. The rule is one-sided, since
-- several batches in flight are normal. One batch in flight bounds the latency from below. If the public configuration
-- behind the row times an item, the message says so. If the source says that it times a batch, its throughput counts time
-- outside: a remark, no error.
WITH impossible AS (
    SELECT
        p.*, c.repository, c.tag, c.path,
        p.throughput * p.latency_ms / 1000.0 AS items,
        p.batch_size / p.throughput * 1000.0 AS min_latency_ms,
        coalesce(p.latency_basis = 'per-batch', FALSE) AND c.path IS NULL AS has_gaps
    FROM rules.published p
    LEFT JOIN rules.configured c USING (result_id)
    WHERE p.below_one_batch
), readings AS (
    SELECT
        *,
        CASE
            WHEN has_gaps THEN
                'the latency is that of a batch, so the throughput counts time outside it: {} ms per batch'
            WHEN latency_basis = 'per-item' AND path IS NOT NULL THEN
                'the printed value is per item, as the script of '
                || format('{}, {} {}', path, repository, tag)
                || ', computes it: at least {} ms per batch'
            WHEN latency_basis = 'per-item' THEN
                'the printed value is per item, as the source says: at least {} ms per batch'
            ELSE 'at least {} ms per batch if the printed value is per item'
        END AS reading,
        -- within 5 %: both figures are rounded
        if(abs(items / chip_count - 1) < 0.05, ', one item on each chip', '') AS hint
    FROM impossible
)
SELECT
    result_id, 'latency_ms' AS column_name, if(has_gaps, 'info', 'error') AS severity,
    format(
        '{} batches in flight: throughput {} × latency {} ms / batch {}; {} items{}; {}',
        format_rounded(in_flight), format_figure(throughput), format_figure(latency_ms), batch_size,
        format_rounded(items), hint, replace(reading, '{}', format_rounded(min_latency_ms))
    ) AS message,
    format('at least {}', format_rounded(min_latency_ms)) AS suggested
FROM readings
