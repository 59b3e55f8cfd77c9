-- Aggregate bandwidth of a reduction of 25,000 operands a tile over its tiles, beside the share that Citadel's table 4.18 prints.
WITH reductions AS (
    SELECT
        *, regexp_extract(place, 'row (\d+)', 1)::INTEGER AS row_of_table, regexp_extract(shape, 'tiles=(\d+)', 1)::DOUBLE AS tiles
    FROM microbenchmarks
    WHERE document_id = 'independent-citadel-2019' AND contains(place, 'table 4.18,')
)
SELECT
    w.value / w.tiles / t.value AS value, w.conditions || ', row ' || row_of_table AS baseline,
    printf('%.0f GB/s / %.0f = %.2f; printed %g GB/s', w.value, w.tiles, w.value / w.tiles, t.value) AS arithmetic,
    ['microbenchmarks:' || w.microbenchmark_id, 'microbenchmarks:' || t.microbenchmark_id] AS inputs
FROM reductions AS w
JOIN reductions AS t USING (row_of_table)
WHERE row_of_table >= 24 AND w.statistic IS NULL AND t.statistic = 'per tile'
ORDER BY row_of_table
