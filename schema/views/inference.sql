SELECT
    result_id, origin, publisher, model, variant, platform, chip, chip_count, sdk_version, framework,
    precision, compute_precision, batch_size, throughput, item, latency_ms, latency_basis,
    latency_kind, efficiency, run_id, suspect,
    (SELECT count(*) FROM flags f WHERE f.result_id = r.result_id AND f.severity = 'error') AS errors,
    (SELECT count(*) FROM flags f WHERE f.result_id = r.result_id AND f.severity = 'warn') AS warnings,
    document_id, table_name, row_number, published_on
FROM results r
WHERE task = 'inference'
