-- Power of 16 IPUs beside that of an IPU-POD16, as Texas A&M states both.
SELECT
    16 * c.value AS value, 'the IPU-POD16 without its host' AS baseline,
    printf('16 x %g W = %g W; printed %g W', c.value, 16 * c.value, p.value) AS arithmetic,
    ['facts:' || c.fact_id, 'facts:' || p.fact_id] AS inputs
FROM detail.facts AS c
JOIN detail.facts AS p ON p.fact_id = 'aces-ipu-pod16-thermal-design-power'
WHERE c.fact_id = 'aces-gc200-thermal-design-power'
