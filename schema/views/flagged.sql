SELECT
    result_id, origin, publisher, document_id, table_name, row_number, published_on, run_id, task, benchmark,
    division, mlperf_id, mlperf_round, model, variant, dataset, platform, chip, chip_count, sdk_version,
    framework, compiler, precision, activation_bits, weight_bits, compute_precision, batch_size,
    micro_batch_size, throughput, item, latency_ms, latency_ms_low, latency_ms_high, interval_confidence,
    latency_isolated_ms, latency_p90_ms, latency_p99_ms, latency_basis, latency_kind, suspect, calibration_id,
    power_scope, efficiency, power_w, time_to_train_s, time_to_result_s, quality_metric, quality_value,
    quality_target, ranking, network, errors, warnings, batches_in_flight, path
FROM results
LEFT JOIN (SELECT result_id, path FROM mlperf_entries WHERE result_id IS NOT NULL) USING (result_id)
