-- Tiles of a chip of the claim's card times the threads per core that the paper prints.
SELECT
    p.tiles_per_chip * t.value AS value,
    p.platform AS baseline,
    printf('%d × %g = %g', p.tiles_per_chip, t.value, p.tiles_per_chip * t.value) AS arithmetic,
    ['platforms:' || p.platform, 'claims:' || t.claim_id] AS inputs
FROM claim AS c
JOIN platforms AS p ON p.platform = c.subject
CROSS JOIN printed AS t
WHERE t.claim_id = 'qwant2020-threads-per-core'
ORDER BY p.platform
