-- Memory bandwidth of the claim's chip as another party prints it; nobody prints the bytes that a tile moves per cycle.
SELECT
    f.value AS value,
    f.source AS baseline,
    printf('%g %s', f.value, f.unit) AS arithmetic,
    ['facts:' || f.fact_id, 'platforms:' || p.platform] AS inputs
FROM claim AS c
JOIN platforms AS p ON p.platform = c.subject
JOIN facts AS f ON f.subject = p.chip AND f.property = 'memory bandwidth'
ORDER BY f.fact_id
