SELECT
    result_id, origin, publisher, relationship, interest, model, model_printed, variant,
    {work} AS work,
    dataset, dataset_printed, sequence_length, packed, platform, chip, chip_count, sdk_version, framework, precision,
    precision_printed, batch_size, micro_batch_size, input_tokens, output_tokens, parallelism, concurrency,
    throughput, item, throughput_per_chip, throughput_implied, latency_ms, latency_basis,
    {batches_in_flight} AS batches_in_flight,
    efficiency, power_scope, conditions, usable, errors, warnings, run_id, document_id, table_name, row_number, published_on
FROM measurements
WHERE task = 'inference'
