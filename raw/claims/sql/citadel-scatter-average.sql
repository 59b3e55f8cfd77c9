-- Total latency of a scatter over its transfers, beside the average that Citadel's table 4.13 prints: from one chip to another.
WITH scatters AS (
    SELECT
        *, regexp_extract(place, 'row (\d+)', 1)::INTEGER AS row_of_table,
        regexp_extract(shape, 'transfers=(\d+)', 1)::DOUBLE AS transfers
    FROM microbenchmarks
    WHERE document_id = 'independent-citadel-2019' AND contains(place, 'table 4.13,')
)
SELECT
    1000 * w.value / w.transfers AS value, w.conditions AS baseline,
    printf('%g us / %.0f = %.3f ns; printed %g ns', w.value, w.transfers, 1000 * w.value / w.transfers, t.value) AS arithmetic,
    ['microbenchmarks:' || w.microbenchmark_id, 'microbenchmarks:' || t.microbenchmark_id] AS inputs
FROM scatters AS w
JOIN scatters AS t USING (row_of_table)
WHERE row_of_table BETWEEN 12 AND 14 AND contains(w.place, 'Total') AND contains(t.place, 'Avg')
ORDER BY row_of_table
