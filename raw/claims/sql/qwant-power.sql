-- Throughput over efficiency is the power that the paper measured at that batch.
SELECT
    throughput / efficiency AS value,
    'the paper''s own tables, batch ' || batch_size AS baseline,
    printf('%g / %g = %.1f W', throughput, efficiency, throughput / efficiency) AS arithmetic
FROM results
WHERE document_id = 'qwant-c2-report-2020-02-28' AND table_name = 'qwant_c2'
ORDER BY batch_size, result_id
