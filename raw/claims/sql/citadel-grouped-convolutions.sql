-- Greatest ratio of GC2 over V100 among the convolutions with 32 groups of Citadel's table 5.3.
SELECT
    i.value / g.value AS value, i.shape AS baseline, printf('%g / %g = %.1f', i.value, g.value, i.value / g.value) AS arithmetic,
    ['microbenchmarks:' || i.microbenchmark_id, 'microbenchmarks:' || g.microbenchmark_id] AS inputs
FROM claim AS c
JOIN microbenchmarks AS i ON i.document_id = 'independent-citadel-2019' AND i.chip = c.subject
JOIN microbenchmarks AS g ON g.document_id = i.document_id AND g.chip = c.baseline AND g.shape = i.shape AND g.metric = i.metric
WHERE i.metric = 'arithmetic throughput' AND contains(i.place, 'table 5.3,') AND contains(g.place, 'table 5.3,')
    AND contains(i.shape, 'groups=32')
QUALIFY i.value / g.value = max(i.value / g.value) OVER ()
ORDER BY i.shape
