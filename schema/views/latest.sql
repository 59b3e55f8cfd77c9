SELECT
    result_id, publisher, task, model, variant, dataset, platform, chip_count, sdk_version, framework, precision,
    compute_precision, batch_size, throughput, item, latency_ms, time_to_train_s, document_id, published_on,
    chip, compiler, latency_basis, micro_batch_size, network, phase, sequence_length, packed, dataset_canonical,
    effective_precision, chips, throughput_per_chip, throughput_implied, batches_in_flight, relationship, errors,
    warnings, remarks, sparsity
FROM detail.record
WHERE origin = 'published' AND benchmark IS DISTINCT FROM 'mlperf-training' AND sparsity IS NULL AND same_as IS NULL
QUALIFY row_number() OVER (
    PARTITION BY
        publisher, task, model, variant, dataset, platform, framework, compiler, precision, compute_precision,
        sparsity,
        CASE WHEN task = 'inference' THEN batch_size END
    ORDER BY published_on DESC NULLS LAST, document_id DESC, row_number
) = 1
