SELECT
    r.result_id, r.origin, r.relationship, r.publisher, r.model, r.variant,
    r.work,
    r.sequence_length, r.dataset, r.platform, r.chip, r.chip_count, r.sdk_version, r.framework, r.precision,
    r.precision_printed, r.batch_size, r.throughput, r.item, r.latency_ms, r.latency_basis,
    r.batches_in_flight,
    r.usable,
    CASE
        WHEN r.errors > 0 THEN 'error'
        WHEN NOT r.usable THEN 'suspect'
        WHEN r.latency_basis = 'per-item' THEN 'per-item'
        WHEN r.sparsity IS NOT NULL THEN 'sparse'
    END AS left_out,
    nullif(
        concat_ws(
            '; ',
            m.remark,
            format('{:,} {}s/s per chip there', CAST(round(m.throughput / m.chip_count) AS BIGINT), m.item),
            f.message
        ),
        ''
    ) AS remark,
    r.document_id, r.table_name, r.row_number, r.conditions
FROM (SELECT *, {work} AS work, {batches_in_flight} AS batches_in_flight FROM results) r
LEFT JOIN detail.comparison_remarks m
    ON r.origin = 'published' AND m.publisher = r.publisher AND m.task = r.task AND m.model = r.model
    AND m.framework = r.framework
LEFT JOIN flags f ON f.result_id = r.result_id AND f.rule = 'R26'
WHERE r.task = 'inference' AND r.latency_ms IS NOT NULL AND r.origin <> 'emulated' AND r.same_as IS NULL
    AND r.relationship IS DISTINCT FROM 'submitted'
    AND r.document_id NOT IN (SELECT document_id FROM documents WHERE figures_are IS NOT NULL)
