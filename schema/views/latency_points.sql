SELECT
    r.result_id, r.origin, r.relationship, r.publisher, r.model, r.network, r.variant, r.dataset, r.platform, r.chip, r.chip_count,
    r.sdk_version, r.framework, r.compiler, r.precision, r.compute_precision, r.batch_size, r.throughput, r.item,
    r.latency_ms, r.latency_basis, r.latency_kind, r.batches_in_flight, r.errors, r.warnings, r.suspect,
    CASE WHEN NOT regexp_matches(r.variant, '^(lowest latency|higher throughput) config$') THEN r.variant END AS work,
    r.sequence_length,
    CASE
        WHEN r.errors > 0 THEN 'error'
        WHEN r.suspect IS NOT NULL THEN 'suspect'
        WHEN r.latency_basis = 'per-item' THEN 'per-item'
        WHEN r.sparsity IS NOT NULL THEN 'sparse'
    END AS left_out,
    nullif(
        concat_ws(
            '; ',
            m.remark,
            format('{:,} {}s/s per chip there', CAST(round(m.throughput / m.chips) AS BIGINT), m.item),
            f.message
        ),
        ''
    ) AS remark,
    r.document_id, r.table_name, r.row_number, r.conditions
FROM detail.record r
LEFT JOIN detail.comparison_remarks m
    ON r.origin = 'published' AND m.publisher = r.publisher AND m.task = r.task AND m.network = r.network
    AND m.framework = r.framework
LEFT JOIN flags f ON f.result_id = r.result_id AND f.rule = 'R26'
WHERE r.task = 'inference' AND r.benchmark IS DISTINCT FROM 'mlperf-training' AND r.latency_ms IS NOT NULL
    AND r.origin <> 'emulated' AND r.same_as IS NULL
