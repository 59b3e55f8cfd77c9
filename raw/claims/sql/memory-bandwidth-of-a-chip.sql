-- Memory bandwidth of the claim's chip as other parties state it: a summary of a report, which repeats a nominal figure, and
-- the theoretical limit of reading that the report itself prints.
SELECT
    f.value AS value,
    f.source AS baseline,
    printf('%g %s', f.value, f.unit) AS arithmetic,
    ['facts:' || f.fact_id, 'platforms:' || p.platform] AS inputs,
    'a nominal rate' AS reading
FROM claim AS c
JOIN platforms AS p ON p.platform = c.subject
JOIN detail.facts AS f ON f.subject = p.chip AND f.property = 'memory bandwidth'
UNION ALL
SELECT
    m.value, m.publisher || ', theoretical limit of ' || m.operation || ', ' || m.shape, printf('%g %s', m.value, m.unit),
    ['microbenchmarks:' || m.microbenchmark_id, 'platforms:' || p.platform],
    'the limit of reading all memory at once'
FROM claim AS c
JOIN platforms AS p ON p.platform = c.subject
JOIN microbenchmarks AS m ON m.chip = p.chip AND m.metric = 'bandwidth' AND m.operation = 'read local memory'
WHERE m.statistic = 'theoretical' AND m.unit = c.unit
ORDER BY value DESC
