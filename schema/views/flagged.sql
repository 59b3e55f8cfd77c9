SELECT
    r.result_id, r.origin, r.publisher, r.document_id, r.table_name, r.row_number, r.published_on, r.run_id, r.task,
    r.benchmark, r.division, r.mlperf_id, r.mlperf_round, r.model, r.variant, r.dataset, r.platform, r.chip,
    r.chip_count, r.sdk_version, r.framework, r.compiler, r.precision, r.activation_bits, r.weight_bits,
    r.compute_precision, r.batch_size, r.micro_batch_size, r.throughput, r.item, r.latency_ms, r.latency_ms_low,
    r.latency_ms_high, r.interval_confidence, r.latency_isolated_ms, r.latency_p90_ms, r.latency_p99_ms,
    r.latency_basis, r.latency_kind, r.suspect, r.calibration_id, r.power_scope, r.efficiency, r.power_w,
    r.time_to_train_s, r.time_to_result_s, r.quality_metric, r.quality_value, r.quality_target, r.ranking,
    r.network, r.errors, r.warnings, r.batches_in_flight, e.path
FROM results r
LEFT JOIN mlperf_entries e USING (result_id)
