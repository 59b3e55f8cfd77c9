-- Measured matrix products of one GC2 over those of one V100, of Citadel's tables 5.1 and 5.2, in the claim's precision.
SELECT
    i.value / g.value AS value, 'GC2 by ' || regexp_extract(i.place, 'table 5\.\d') AS baseline,
    printf('%g / %g = %.2f', i.value, g.value, i.value / g.value) AS arithmetic,
    ['microbenchmarks:' || i.microbenchmark_id, 'microbenchmarks:' || g.microbenchmark_id] AS inputs
FROM claim AS c
JOIN microbenchmarks AS i ON i.document_id = 'independent-citadel-2019' AND i.chip = c.subject
JOIN microbenchmarks AS g
    ON g.document_id = i.document_id AND g.chip = c.baseline AND g.operation = i.operation AND g.metric = i.metric
    AND g.statistic = i.statistic AND g.precision_printed = i.precision_printed
WHERE i.operation = 'matrix product' AND i.metric = 'arithmetic throughput' AND i.statistic = 'peak'
    AND i.precision_printed = c.precision_printed
ORDER BY baseline, i.microbenchmark_id
