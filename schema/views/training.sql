SELECT
    result_id, origin, publisher, model, variant, dataset, platform, chip, chip_count, sdk_version,
    framework, precision, compute_precision, batch_size, throughput, item, time_to_train_s,
    quality_metric, quality_value,
    errors, warnings,
    document_id, table_name, row_number, published_on,
    compiler, benchmark, time_to_result_s, network, phase, sequence_length, packed, dataset_canonical,
    effective_precision, micro_batch_size, chips, throughput_per_chip, minutes, relationship, remarks, conditions, same_as
FROM detail.record
WHERE task = 'training' AND benchmark IS DISTINCT FROM 'mlperf-training'
    AND origin <> 'emulated' AND sparsity IS NULL AND same_as IS NULL AND includes_start_up IS NOT TRUE
