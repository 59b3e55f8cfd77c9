SELECT
    result_id, origin, publisher, relationship, interest, benchmark, model, model_printed, variant,
    concat_ws(', ', model, phase, sequence_length || ' tokens', CASE WHEN packed THEN 'packed' END) AS work,
    phase, dataset, dataset_printed, sequence_length, packed, platform, chip, chip_count, sdk_version, framework,
    precision, precision_printed, batch_size, micro_batch_size, parallelism, throughput, item, throughput_per_chip, time_to_train_s,
    minutes, efficiency, power_scope, conditions, usable, errors, warnings, document_id, table_name, row_number,
    published_on
FROM measurements
WHERE task = 'training' AND benchmark IS DISTINCT FROM 'mlperf-training'
    AND result_id NOT IN (SELECT result_id FROM flags WHERE rule = 'R36')
