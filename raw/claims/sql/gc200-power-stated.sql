-- Power of one GC200 as independent papers state it.
SELECT value, source AS baseline, printf('%s: %g W', property, value) AS arithmetic, ['facts:' || fact_id] AS inputs, NULL::VARCHAR AS relation
FROM detail.facts
WHERE subject = 'GC200' AND unit = 'W'
ORDER BY value, fact_id
