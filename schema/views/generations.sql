SELECT
    task, model, variant, dataset, chip_count, bow_platform, classic_platform, framework, precision, batch_size,
    bow_sdk_version, classic_sdk_version, item, bow_throughput, classic_throughput, throughput_ratio, clock_ratio, usable,
    bow_result_id, classic_result_id
FROM detail.generation_pairs
WHERE near_sdk AND excluded_because IS NULL
