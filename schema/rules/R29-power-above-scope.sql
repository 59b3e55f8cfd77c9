-- scope: document
-- Flag more power than the chips or the machine that `power_scope` names are rated for. The power is the printed one, else
-- throughput × energy per item, else throughput / efficiency. Energy of chips or cards is compared with the rating of one
-- chip × chips, or of one where the conditions say that it is of each chip. A die is compared with the whole chip. A row
-- without a scope, or without a rating, is not checked.
WITH scopes AS (
    SELECT
        p.*, c.rated_w,
        if(c.is_die, ', whole chips of two dies each', '') AS dies,
        power_scope IN ('device', 'board') AS is_of_chips,
        if(is_of_chips AND regexp_matches(conditions, '(?i)\bper (?:IPU|GPU|GCD)\b'), 1, chip_count)
            AS rated_chips
    FROM rules.published p
    LEFT JOIN rules.rated_chips c USING (chip)
    WHERE power_scope IN ('machine', 'device', 'board')
), readings AS (
    SELECT *, 1 AS choice, 'power_w' AS column_name, power_w AS power, 'printed' AS origin FROM scopes
    UNION ALL
    SELECT
        *, 2, 'energy_per_item_j', throughput * energy_per_item_j,
        format(
            'throughput {} × {} J an item', format_figure(throughput), format_figure(energy_per_item_j)
        )
    FROM scopes
    UNION ALL
    SELECT
        *, 3, 'efficiency', throughput / efficiency,
        format('throughput {} / efficiency {:.4g}', format_figure(throughput), efficiency)
    FROM scopes
), limits AS (
    SELECT *, if(is_of_chips, rated_w * rated_chips, rated_power_w) AS limit_w FROM readings
)
SELECT
    result_id, column_name, 'error' AS severity,
    format(
        '{} W: {}; {} (power of {}{}) are rated {} W', format_rounded(power), origin,
        if(is_of_chips, format('{} × {}', rated_chips, chip), platform),
        power_scope, dies, format_figure(limit_w)
    ) AS message
FROM limits
WHERE power > limit_w
QUALIFY row_number() OVER (PARTITION BY result_id ORDER BY choice) = 1
