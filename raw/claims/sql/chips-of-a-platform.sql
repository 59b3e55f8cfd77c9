-- Chips of the claim's machine, curated from its datasheet.
SELECT
    p.chip_count::DOUBLE AS value,
    p.platform AS baseline,
    printf('%d chips', p.chip_count) AS arithmetic,
    ['platforms:' || p.platform] AS inputs
FROM claim AS c
JOIN platforms AS p ON p.platform = c.subject
ORDER BY p.platform
