WITH histories AS (SELECT document_id FROM cells WHERE column_name = 'printed_until')
SELECT
    result_id, publisher, relationship, interest, task, model, model_printed, variant, phase, dataset, dataset_printed,
    sequence_length, packed, platform, chip, chip_count, sdk_version, framework, precision, precision_printed, batch_size,
    micro_batch_size, input_tokens, output_tokens, parallelism, concurrency, throughput, item, throughput_per_chip,
    throughput_implied, latency_ms, latency_basis, time_to_train_s, minutes, conditions, usable, errors, warnings, document_id, published_on
FROM measurements
WHERE origin = 'published' AND benchmark IS DISTINCT FROM 'mlperf-training' AND printed_until IS NULL
QUALIFY row_number() OVER (
    PARTITION BY
        publisher, task, model_printed, variant, dataset_printed, platform, framework, precision_printed,
        {by_xla}, CASE WHEN task = 'inference' THEN batch_size END,
        -- of a page with its history, what it does not print any more is left out above
        CASE WHEN document_id IN (FROM histories) THEN result_id END
    ORDER BY published_on DESC NULLS LAST, document_id DESC, row_number
) = 1
