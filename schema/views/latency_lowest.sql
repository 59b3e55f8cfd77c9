SELECT
    origin, relationship, publisher, model, variant, work, sequence_length, platform, chip, chip_count, latency_ms,
    batch_size, precision, latency_basis, batches_in_flight, throughput, item,
    count(*) OVER same AS rows,
    count(*) FILTER (throughput IS NULL) OVER same AS rows_without_throughput,
    sdk_version, framework, usable, result_id, document_id, table_name, row_number, conditions, remark
FROM detail.latency_points
WHERE left_out IS NULL
WINDOW same AS (PARTITION BY origin, relationship, work, platform, precision)
QUALIFY row_number() OVER (same ORDER BY latency_ms, batch_size DESC, result_id) = 1
