-- Rows with more power than what `power_scope` names is rated for: what R29 flags, which says how it is computed.
WITH scopes AS (
    SELECT
        p.*, c.rated_w,
        CASE WHEN c.is_die THEN ', whole chips of two dies each' ELSE '' END AS dies,
        power_scope IN ('device', 'board') AS is_of_chips,
        CASE
            WHEN is_of_chips AND regexp_matches(conditions, '(?i)\bper (?:IPU|GPU|GCD)\b') THEN 1
            ELSE chip_count
        END AS rated_chips
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
    SELECT *, CASE WHEN is_of_chips THEN rated_w * rated_chips ELSE rated_power_w END AS limit_w FROM readings
)
FROM limits
WHERE power > limit_w
QUALIFY row_number() OVER (PARTITION BY result_id ORDER BY choice) = 1
