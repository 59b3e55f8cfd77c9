-- Largest batch of the paper's own tables over the chips of the card.
SELECT
    (max(r.batch_size) / max(p.chip_count))::DOUBLE AS value,
    'the paper''s own tables' AS baseline,
    printf(
        '%d / %d = %g', max(r.batch_size), max(p.chip_count), (max(r.batch_size) / max(p.chip_count))::DOUBLE
    ) AS arithmetic,
    list_prepend('platforms:' || max(p.platform), list('results:' || r.result_id ORDER BY r.batch_size)) AS inputs
FROM results AS r
JOIN platforms AS p USING (platform)
WHERE r.document_id = 'qwant-c2-report-2020-02-28' AND r.table_name = 'qwant_c2'
ORDER BY value
