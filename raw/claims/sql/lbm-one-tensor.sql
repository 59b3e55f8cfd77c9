-- Cycles of the halo exchange by one tensor over those of each other way.
SELECT
    one.value / other.value AS value, other.shape AS baseline,
    printf('%g / %g = %.0f', one.value, other.value, one.value / other.value) AS arithmetic,
    ['microbenchmarks:' || one.microbenchmark_id, 'microbenchmarks:' || other.microbenchmark_id] AS inputs
FROM microbenchmarks AS one
JOIN microbenchmarks AS other
    ON other.document_id = one.document_id AND other.operation = one.operation AND other.statistic = 'total'
        AND other.value < one.value
WHERE one.document_id = 'independent-lbm-graphcore' AND one.operation = 'halo exchange' AND one.statistic = 'total'
    AND one.value > 1e8
ORDER BY value
