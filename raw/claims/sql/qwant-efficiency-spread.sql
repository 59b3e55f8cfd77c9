-- Best over worst efficiency of the paper's own table from the smallest batch that the claim names.
SELECT
    max(r.efficiency) / min(r.efficiency) AS value,
    'the paper''s own table, batches ' || min(r.batch_size) || ' to ' || max(r.batch_size) AS baseline,
    printf(
        '%g / %g = %.3f', max(r.efficiency), min(r.efficiency), max(r.efficiency) / min(r.efficiency)
    ) AS arithmetic,
    list('results:' || r.result_id ORDER BY r.batch_size) AS inputs
FROM claim AS c
JOIN results AS r ON r.batch_size >= regexp_extract(c.batch, '^(\d+) to', 1)::BIGINT
WHERE r.document_id = 'qwant-c2-report-2020-02-28' AND r.table_name = 'qwant_c2'
ORDER BY value
