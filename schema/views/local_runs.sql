SELECT
    u.run_id, r.result_id, r.origin, u.backend, u.device, u.started_at,
    r.model, r.platform, r.chip, r.chip_count, r.sdk_version, r.framework,
    p.backend_version, p.provider, r.compute_precision,
    p.model_precision, p.weights, p.sessions, p.threads, p.pipeline, p.preprocessing,
    r.batch_size, r.micro_batch_size, r.throughput, r.item, r.latency_ms, r.latency_ms_low, r.latency_ms_high,
    r.interval_confidence, r.latency_kind, r.latency_isolated_ms, r.latency_p90_ms, r.latency_p99_ms,
    CASE WHEN r.origin <> 'emulated' THEN r.power_w END AS power_w, r.power_scope,
    CASE WHEN r.origin <> 'emulated' THEN r.efficiency END AS efficiency, p.cosine, p.top1, r.suspect, r.calibration_id,
    CASE WHEN r.origin = 'emulated' THEN r.power_w END AS emulated_power_w,
    CASE WHEN r.origin = 'emulated' THEN r.efficiency END AS emulated_efficiency,
    r.network, r.effective_precision, r.batches_in_flight, r.relationship, r.errors, r.warnings, r.remarks
FROM detail.run_points p
JOIN runs u USING (run_id)
JOIN detail.record r USING (result_id)
ORDER BY u.started_at, u.run_id, r.batch_size
