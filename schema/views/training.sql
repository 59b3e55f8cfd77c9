SELECT
    result_id, origin, publisher, model, variant, dataset, platform, chip, chip_count, sdk_version,
    framework, precision, compute_precision, batch_size, throughput, item, time_to_train_s,
    quality_metric, quality_value,
    errors, warnings,
    document_id, table_name, row_number, published_on
FROM flagged
WHERE task = 'training' AND benchmark IS DISTINCT FROM 'mlperf-training'
