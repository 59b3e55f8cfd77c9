SELECT
    result_id, origin, publisher, relationship, model, model_printed, variant,
    concat_ws(
        ', ', model, sequence_length || ' tokens', CASE WHEN packed THEN 'packed' END,
        CASE WHEN sequence_length IS NULL AND variant <> model AND variant NOT LIKE '% config' THEN variant END
    ) AS work,
    dataset, dataset_printed, sequence_length, packed, platform, chip, chip_count, sdk_version, framework, precision,
    precision_printed, batch_size, micro_batch_size, throughput, item, throughput_per_chip, throughput_implied,
    latency_ms, latency_basis,
    CASE WHEN latency_basis IS DISTINCT FROM 'per-item' THEN throughput * latency_ms / 1000 / batch_size END
        AS batches_in_flight,
    efficiency, power_scope, conditions, usable, errors, warnings, run_id, document_id, table_name, row_number, published_on
FROM measurements
WHERE task = 'inference'
