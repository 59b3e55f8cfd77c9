-- Bandwidth of links between GC200 chips that Peng et al. state on one page, in GB/s.
SELECT value, place AS baseline, printf('%s: %g GB/s', property, value) AS arithmetic, ['facts:' || fact_id] AS inputs, NULL::VARCHAR AS relation
FROM detail.facts
WHERE fact_id LIKE 'peng-gc200-bandwidth%'
ORDER BY value
