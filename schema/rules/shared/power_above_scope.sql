-- Rows with more power than what `power_scope` names is rated for: what R29 flags, which says how it is computed.
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
FROM limits
WHERE power > limit_w
QUALIFY row_number() OVER (PARTITION BY result_id ORDER BY choice) = 1
