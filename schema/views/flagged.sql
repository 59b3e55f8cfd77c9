SELECT
    r.*,
    coalesce(f.network, r.model) AS network, coalesce(f.errors, 0) AS errors, coalesce(f.warnings, 0) AS warnings,
    CASE
        WHEN r.latency_basis IS DISTINCT FROM 'per-item' THEN r.throughput * r.latency_ms / 1000 / r.batch_size
    END AS batches_in_flight,
    e.path
FROM results r
LEFT JOIN mlperf_entries e USING (result_id)
LEFT JOIN (
    SELECT
        result_id,
        max(suggested) FILTER (rule = 'R20' AND column_name = 'model') AS network,
        count(*) FILTER (severity = 'error') AS errors,
        count(*) FILTER (severity = 'warn') AS warnings
    FROM flags
    GROUP BY result_id
) f USING (result_id)
