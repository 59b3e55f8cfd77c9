-- Largest batch of the paper's own tables.
SELECT
    max(batch_size)::DOUBLE AS value,
    'the paper''s own tables' AS baseline,
    string_agg(batch_size::TEXT, ', ' ORDER BY batch_size) AS arithmetic,
    list('results:' || result_id ORDER BY batch_size) AS inputs
FROM results
WHERE document_id = 'qwant-c2-report-2020-02-28' AND table_name = 'qwant_c2'
ORDER BY value
