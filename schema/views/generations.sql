SELECT
    task, model, bow_variant AS variant, bow_dataset AS dataset, chip_count, bow_platform, classic_platform,
    bow_framework AS framework, bow_precision AS precision, bow_batch_size AS batch_size,
    bow_sdk_version, classic_sdk_version, item, bow_throughput, classic_throughput, throughput_ratio,
    bow_latency_ms, classic_latency_ms, latency_ratio, clock_ratio, errors, bow_result_id, classic_result_id
FROM detail.generations_naive
WHERE
    same_test AND same_framework AND same_precision AND same_batch AND same_item AND near_sdk AND errors = 0
