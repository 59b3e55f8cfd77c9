-- Throughput times latency over batch size at each row of the paper's own tables.
SELECT
    throughput * latency_ms / 1000 / batch_size AS value,
    'the paper''s own tables, batch ' || batch_size AS baseline,
    printf(
        '%g × %g / 1000 / %d = %.4f', throughput, latency_ms, batch_size, throughput * latency_ms / 1000 / batch_size
    ) AS arithmetic,
    ['results:' || result_id] AS inputs
FROM results
WHERE document_id = 'qwant-c2-report-2020-02-28' AND table_name = 'qwant_c2'
ORDER BY batch_size, result_id
