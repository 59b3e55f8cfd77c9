SELECT
    result_id, origin, publisher, model, variant, platform, chip, chip_count, sdk_version, framework,
    precision, compute_precision, batch_size, throughput, item, latency_ms, latency_basis,
    latency_kind, efficiency, run_id, suspect,
    errors, warnings,
    document_id, table_name, row_number, published_on,
    compiler, dataset, network, sequence_length, packed, dataset_canonical, effective_precision, micro_batch_size,
    chips, throughput_per_chip, throughput_implied, batches_in_flight, power_w, power_scope, relationship, remarks, conditions,
    same_as, sparsity
FROM detail.record
WHERE task = 'inference' AND origin <> 'emulated' AND sparsity IS NULL AND same_as IS NULL
