-- Tiles of a chip of the claim's card times the memory of a core that the paper prints, in MiB.
SELECT
    p.tiles_per_chip * m.value / 1024 AS value,
    p.platform AS baseline,
    printf('%d × %g KiB / 1024 = %g MiB', p.tiles_per_chip, m.value, p.tiles_per_chip * m.value / 1024) AS arithmetic,
    ['platforms:' || p.platform, 'claims:' || m.claim_id] AS inputs
FROM claim AS c
JOIN platforms AS p ON p.platform = c.subject
CROSS JOIN printed AS m
WHERE m.claim_id = 'qwant2020-core-memory'
ORDER BY p.platform
