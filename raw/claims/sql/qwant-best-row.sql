-- Best row of the paper's own table in the claim's metric: the lowest latency, the highest throughput or efficiency.
WITH rows AS (
    SELECT r.result_id, r.batch_size, r.latency_ms AS figure, count(*) OVER () AS batches
    FROM results AS r
    CROSS JOIN claim AS c
    WHERE c.metric = 'latency' AND r.document_id = 'qwant-c2-report-2020-02-28' AND r.table_name = 'qwant_c2'
    UNION ALL
    SELECT r.result_id, r.batch_size, r.throughput, count(*) OVER ()
    FROM results AS r
    CROSS JOIN claim AS c
    WHERE c.metric = 'throughput' AND r.document_id = 'qwant-c2-report-2020-02-28' AND r.table_name = 'qwant_c2'
    UNION ALL
    SELECT r.result_id, r.batch_size, r.efficiency, count(*) OVER ()
    FROM results AS r
    CROSS JOIN claim AS c
    WHERE c.metric = 'efficiency' AND r.document_id = 'qwant-c2-report-2020-02-28' AND r.table_name = 'qwant_c2'
)
SELECT
    f.figure AS value,
    'the paper''s own table, batch ' || f.batch_size AS baseline,
    printf(
        '%s of %d batches: %.2f %s', CASE c.direction WHEN 'lower' THEN 'lowest' ELSE 'highest' END, f.batches,
        f.figure, c.unit
    ) AS arithmetic,
    ['results:' || f.result_id] AS inputs
FROM rows AS f
CROSS JOIN claim AS c
ORDER BY CASE c.direction WHEN 'lower' THEN f.figure ELSE -f.figure END, f.batch_size
LIMIT 1
