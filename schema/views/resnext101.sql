SELECT
    r.result_id, r.origin, r.publisher,
    nullif(r.network, 'ResNeXt101') AS network,
    CASE WHEN r.model <> 'ResNeXt101' THEN 'named' WHEN r.network <> r.model THEN 'flag R20' END AS network_source,
    r.platform, r.chip, r.chip_count, r.sdk_version, r.framework, r.compiler, r.precision, r.compute_precision,
    r.dataset, r.batch_size, r.micro_batch_size, r.throughput, r.throughput / r.chip_count AS throughput_per_chip,
    r.item, r.latency_ms, r.latency_ms_low, r.latency_ms_high, r.latency_kind, r.latency_basis,
    r.batches_in_flight,
    CASE WHEN r.origin <> 'emulated' THEN r.efficiency END AS efficiency,
    r.suspect, r.calibration_id, r.run_id, r.errors, r.warnings,
    r.document_id, r.table_name, r.row_number, r.published_on,
    CASE WHEN r.origin = 'emulated' THEN r.efficiency END AS emulated_efficiency,
    p.remark
FROM detail.record r
LEFT JOIN detail.latency_points p USING (result_id)
WHERE r.task = 'inference' AND r.model LIKE 'ResNeXt101%'
