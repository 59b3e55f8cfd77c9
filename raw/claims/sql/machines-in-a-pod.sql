-- Processors of the claim's machine over those of its baseline.
SELECT
    (whole.chip_count / part.chip_count)::DOUBLE AS value,
    part.platform AS baseline,
    printf(
        '%d / %d = %g', whole.chip_count, part.chip_count, (whole.chip_count / part.chip_count)::DOUBLE
    ) AS arithmetic,
    ['platforms:' || whole.platform, 'platforms:' || part.platform] AS inputs
FROM claim AS c
JOIN platforms AS whole ON whole.platform = c.subject
JOIN platforms AS part ON part.platform = c.baseline
ORDER BY part.platform
