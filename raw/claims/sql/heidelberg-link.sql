-- Bandwidth between GC200 chips that the paper of Heidelberg states in its table and in its text, in GB/s.
SELECT
    CASE unit WHEN 'Gbit/s' THEN value / 8 ELSE value END AS value,
    place AS baseline,
    printf('%g %s', value, unit) AS arithmetic,
    ['facts:' || fact_id] AS inputs,
    NULL::VARCHAR AS relation
FROM detail.facts
WHERE subject = 'GC200' AND fact_id LIKE 'heidelberg-%' AND property LIKE 'bandwidth%chips'
ORDER BY fact_id
