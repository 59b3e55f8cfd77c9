-- Tiles of a chip of the claim's card, curated from the datasheet and the paper.
SELECT
    p.tiles_per_chip::DOUBLE AS value,
    p.platform AS baseline,
    printf('%d tiles', p.tiles_per_chip) AS arithmetic,
    ['platforms:' || p.platform] AS inputs
FROM claim AS c
JOIN platforms AS p ON p.platform = c.subject
ORDER BY p.platform
