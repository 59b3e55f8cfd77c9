-- Memory of a chip of the claim's card over its tiles, in KiB.
SELECT
    p.sram_per_chip_mib * 1024 / p.tiles_per_chip AS value,
    p.platform AS baseline,
    printf(
        '%g MiB × 1024 / %d = %g KiB', p.sram_per_chip_mib, p.tiles_per_chip,
        p.sram_per_chip_mib * 1024 / p.tiles_per_chip
    ) AS arithmetic,
    ['platforms:' || p.platform] AS inputs
FROM claim AS c
JOIN platforms AS p ON p.platform = c.subject
ORDER BY p.platform
