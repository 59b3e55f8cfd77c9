-- Threads of a tile of the claim's chip, from the vendor's own library of that day.
SELECT
    f.value AS value,
    f.source AS baseline,
    printf('%g %s', f.value, f.unit) AS arithmetic,
    ['facts:' || f.fact_id, 'platforms:' || p.platform] AS inputs
FROM claim AS c
JOIN platforms AS p ON p.platform = c.subject
JOIN detail.facts AS f ON f.subject = p.chip AND f.property = 'worker threads of a tile'
ORDER BY f.fact_id
