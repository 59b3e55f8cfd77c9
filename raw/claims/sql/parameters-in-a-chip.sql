-- Two bytes for each parameter of the claim's model over the memory of one chip of its card; activations and code are
-- not counted.
SELECT
    m.parameters * 2 / (p.sram_per_chip_mib * 1048576) AS value,
    m.model || ' on one ' || p.chip AS baseline,
    printf(
        '%d × 2 B / (%g MiB × 1048576) = %.2f', m.parameters, p.sram_per_chip_mib,
        m.parameters * 2 / (p.sram_per_chip_mib * 1048576)
    ) AS arithmetic
FROM claim AS c
JOIN models AS m ON m.model = c.model
JOIN platforms AS p ON p.platform = c.subject
ORDER BY m.model
