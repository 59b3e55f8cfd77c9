-- Cores of one AMD EPYC 7443 as two papers state them.
SELECT value, source AS baseline, printf('%g %s', value, unit) AS arithmetic, ['facts:' || fact_id] AS inputs
FROM detail.facts
WHERE subject = 'AMD EPYC 7443' AND property = 'cores'
ORDER BY fact_id
