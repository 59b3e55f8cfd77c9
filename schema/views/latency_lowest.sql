SELECT
    origin, relationship, publisher, network, work, sequence_length, platform, chip, chip_count, latency_ms, batch_size,
    precision, compute_precision, latency_basis, latency_kind, batches_in_flight, throughput, item,
    count(*) OVER same AS rows,
    count(*) FILTER (throughput IS NULL) OVER same AS rows_without_throughput,
    result_id, model, variant, sdk_version, framework, compiler, errors, warnings, document_id, table_name,
    row_number, conditions, remark
FROM detail.latency_points
WHERE left_out IS NULL
WINDOW same AS (PARTITION BY origin, relationship, network, work, platform, coalesce(precision, compute_precision))
QUALIFY row_number() OVER (same ORDER BY latency_ms, batch_size DESC, result_id) = 1
