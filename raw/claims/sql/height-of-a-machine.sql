-- Height of the claim's machine in rack units: as printed, or in millimetres over those of a unit. The datasheet of the
-- DGX A100 gives one height for all its memory sizes.
SELECT
    CASE WHEN f.unit = 'mm' THEN f.value / u.value ELSE f.value END AS value,
    f.source AS baseline,
    CASE
        WHEN f.unit = 'mm' THEN printf('%g mm / %g mm = %.2f', f.value, u.value, f.value / u.value)
        ELSE printf('%g %s', f.value, f.unit)
    END AS arithmetic,
    CASE WHEN f.unit = 'mm' THEN ['facts:' || f.fact_id, 'facts:' || u.fact_id] ELSE ['facts:' || f.fact_id] END AS inputs
FROM claim AS c
JOIN detail.facts AS f ON f.property = 'height' AND starts_with(c.subject, f.subject)
JOIN detail.facts AS u ON u.fact_id = 'rack-unit'
ORDER BY f.fact_id
