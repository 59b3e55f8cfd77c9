SELECT
    bound_ms, origin, relationship, publisher, model, variant, work, platform, chip, chip_count, throughput, item,
    latency_ms, latency_basis, batches_in_flight, sdk_version, framework, precision, batch_size, usable,
    result_id, document_id, table_name, row_number, conditions, remark
FROM detail.latency_front
JOIN (SELECT unnest([1, 5, 10, 20])::DOUBLE AS bound_ms) ON latency_ms <= bound_ms
WHERE left_out IS NULL
QUALIFY row_number() OVER (
    PARTITION BY bound_ms, origin, relationship, work, item, platform
    ORDER BY throughput DESC, latency_ms, result_id
) = 1
