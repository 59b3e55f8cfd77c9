WITH f AS (
    FROM figures
    PIVOT (
        max(value) FOR metric IN (
            'latency_ms_low', 'latency_ms_high', 'interval_confidence', 'latency_isolated_ms', 'latency_p90_ms',
            'latency_p99_ms', 'power_w'
        )
        GROUP BY result_id
    )
)
SELECT
    u.run_id, r.result_id, r.origin, u.backend, u.device, u.started_at, r.model, r.platform, r.chip, r.chip_count,
    r.framework, p.backend_version, p.provider, r.precision,
    p.model_precision, p.weights, p.sessions, p.threads, p.pipeline, p.preprocessing,
    r.batch_size, r.micro_batch_size, r.throughput, r.item, r.latency_ms, f.latency_ms_low, f.latency_ms_high,
    f.interval_confidence, f.latency_isolated_ms, f.latency_p90_ms, f.latency_p99_ms,
    r.batches_in_flight,
    CASE WHEN r.origin <> 'emulated' THEN f.power_w END AS power_w, r.power_scope,
    CASE WHEN r.origin <> 'emulated' THEN r.efficiency END AS efficiency, p.cosine, p.top1, p.calibration_id,
    CASE WHEN r.origin = 'emulated' THEN f.power_w END AS emulated_power_w,
    CASE WHEN r.origin = 'emulated' THEN r.efficiency END AS emulated_efficiency,
    r.relationship, r.usable, r.errors
FROM detail.run_points p
JOIN runs u USING (run_id)
JOIN (SELECT *, {batches_in_flight} AS batches_in_flight FROM results) r USING (result_id)
LEFT JOIN f USING (result_id)
WHERE r.relationship IS DISTINCT FROM 'submitted'
ORDER BY u.started_at, u.run_id, r.batch_size
