-- Batches in flight of published rows by the median latency and by the 99th percentile, of older versions of a page, too.
WITH latencies AS (
    SELECT
        result_id,
        max(value) FILTER (metric = 'latency_median_ms') AS median_ms,
        max(value) FILTER (metric = 'latency_p99_ms') AS p99_ms
    FROM figures
    GROUP BY result_id
)
SELECT
    r.result_id, r.throughput, r.batch_size, l.median_ms, l.p99_ms,
    r.throughput * l.median_ms / 1000 / r.batch_size AS at_median,
    r.throughput * l.p99_ms / 1000 / r.batch_size AS at_p99,
    at_median < {MIN_BATCHES_IN_FLIGHT} AND r.throughput > 0 AS below_one_batch
FROM results r
JOIN latencies l USING (result_id)
WHERE r.origin = 'published' AND at_median IS NOT NULL
