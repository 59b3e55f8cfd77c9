SELECT
    result_id, origin, publisher, model, variant, platform, chip, chip_count, sdk_version, framework,
    precision, compute_precision, batch_size, throughput, item, latency_ms, latency_basis,
    latency_kind, efficiency, run_id, suspect,
    errors, warnings,
    document_id, table_name, row_number, published_on
FROM flagged
WHERE task = 'inference'
