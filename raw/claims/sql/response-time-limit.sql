-- The limit of the cited author in the unit of the claim.
SELECT
    f.value * CASE c.unit WHEN 'ms' THEN 1000 ELSE 1 END AS value,
    f.source AS baseline,
    printf('%g s', f.value) AS arithmetic,
    ['facts:' || f.fact_id] AS inputs
FROM claim AS c
JOIN detail.facts AS f ON f.fact_id = CASE c.unit WHEN 'ms' THEN 'nielsen-instantaneous' ELSE 'nielsen-uninterrupted' END
ORDER BY f.fact_id
