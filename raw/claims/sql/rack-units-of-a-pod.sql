-- IPU-M2000 of the claim's machine times the rack units that the document prints for one, and one unit for the
-- server: that last unit is assumed, no source at hand gives it.
SELECT
    whole.chip_count / part.chip_count * unit.value + 1 AS value,
    'its IPU-M2000 and a server of one unit' AS baseline,
    printf(
        '%d / %d × %g + 1 = %g', whole.chip_count, part.chip_count, unit.value,
        whole.chip_count / part.chip_count * unit.value + 1
    ) AS arithmetic,
    ['platforms:' || whole.platform, 'platforms:' || part.platform, 'claims:' || unit.claim_id] AS inputs
FROM claim AS c
JOIN platforms AS whole ON whole.platform = c.subject
CROSS JOIN platforms AS part
CROSS JOIN printed AS unit
WHERE part.platform = 'IPU-M2000' AND unit.claim_id = 'mlperf2021-m2000-height'
ORDER BY whole.platform
