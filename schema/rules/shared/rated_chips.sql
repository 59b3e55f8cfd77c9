-- The power that one chip is rated for: vocabulary `platforms.chips`. A GCD is one of the two dies of a chip: no source
-- rates one, and it draws no more than the whole chip.
WITH chips AS (
    SELECT chip, CAST(power_w AS DOUBLE) AS rated_w
    FROM (VALUES {platforms.chips: name, rated_chip_power_w}) AS chip (chip, power_w)
    WHERE power_w IS NOT NULL
)
SELECT chip, rated_w, FALSE AS is_die FROM chips
UNION ALL
SELECT chip || ' GCD', rated_w, TRUE FROM chips
