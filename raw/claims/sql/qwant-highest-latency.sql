-- Highest latency of the paper's own table.
SELECT
    latency_ms AS value,
    'the paper''s own table, batch ' || batch_size AS baseline,
    printf('highest of %d batches: %.2f ms', count(*) OVER (), latency_ms) AS arithmetic,
    ['results:' || result_id] AS inputs
FROM results
WHERE document_id = 'qwant-c2-report-2020-02-28' AND table_name = 'qwant_c2'
ORDER BY latency_ms DESC, batch_size
LIMIT 1
