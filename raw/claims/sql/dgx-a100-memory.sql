-- Chips of a DGX A100 times the memory of one, which stands in the chip's name alone.
SELECT
    chip_count * regexp_extract(chip, '(\d+)GB', 1)::DOUBLE AS value,
    platform AS baseline,
    printf('%d × %s', chip_count, chip) AS arithmetic,
    ['platforms:' || platform] AS inputs
FROM platforms
WHERE platform = '8x A100-80GB (DGX A100)'
ORDER BY platform
