SELECT
    result_id, origin, publisher, model, variant, dataset, platform, chip, chip_count, sdk_version,
    framework, precision, compute_precision, batch_size, throughput, item, time_to_train_s,
    quality_metric, quality_value,
    (SELECT count(*) FROM flags f WHERE f.result_id = r.result_id AND f.severity = 'error') AS errors,
    (SELECT count(*) FROM flags f WHERE f.result_id = r.result_id AND f.severity = 'warn') AS warnings,
    document_id, table_name, row_number, published_on
FROM results r
WHERE task = 'training' AND benchmark IS DISTINCT FROM 'mlperf-training'
