SELECT
    bound_ms, origin, relationship, publisher, network, work, platform, chip, chip_count, throughput, item, latency_ms,
    latency_basis, latency_kind, batches_in_flight, result_id, model, variant, sdk_version, framework, compiler,
    precision, compute_precision, batch_size, errors, warnings, document_id, table_name, row_number, conditions, remark
FROM detail.latency_front
JOIN (SELECT unnest([1, 5, 10, 20])::DOUBLE AS bound_ms) ON latency_ms <= bound_ms
WHERE left_out IS NULL
QUALIFY row_number() OVER (
    PARTITION BY bound_ms, origin, relationship, network, work, item, platform
    ORDER BY throughput DESC, latency_ms, result_id
) = 1
