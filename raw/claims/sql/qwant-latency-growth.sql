-- Growth of the latency of the paper's own table from its smallest to its largest batch.
SELECT
    max_by(latency_ms, batch_size) / min_by(latency_ms, batch_size) AS value,
    'the paper''s own table, batch ' || min(batch_size) || ' to ' || max(batch_size) AS baseline,
    printf(
        '%g / %g = %.2f', max_by(latency_ms, batch_size), min_by(latency_ms, batch_size),
        max_by(latency_ms, batch_size) / min_by(latency_ms, batch_size)
    ) AS arithmetic,
    list('results:' || result_id ORDER BY batch_size) AS inputs
FROM results
WHERE document_id = 'qwant-c2-report-2020-02-28' AND table_name = 'qwant_c2'
ORDER BY value
