SELECT
    result_id, origin, publisher,
    nullif(r.network, 'ResNeXt101') AS network,
    CASE WHEN model <> 'ResNeXt101' THEN 'named' WHEN r.network <> model THEN 'flag R20' END AS network_source,
    platform, chip, chip_count, sdk_version, framework, compiler, precision, compute_precision,
    dataset, batch_size, micro_batch_size, throughput, throughput / chip_count AS throughput_per_chip, item,
    latency_ms, latency_ms_low, latency_ms_high, latency_kind, latency_basis,
    batches_in_flight,
    efficiency, suspect, calibration_id, run_id, errors, warnings,
    document_id, table_name, row_number, published_on
FROM results r
WHERE task = 'inference' AND model LIKE 'ResNeXt101%'
