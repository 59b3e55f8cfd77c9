WITH ratings AS (
    SELECT chip, any_value(family) AS family, max(rated_chip_power_w) AS rated_chip_power_w
    FROM platforms
    GROUP BY chip
),
rules AS (
    SELECT result_id, string_agg(DISTINCT rule, ', ' ORDER BY rule) AS error_rules
    FROM flags
    WHERE severity = 'error'
    GROUP BY result_id
),
rows AS (
    SELECT
        r.*, p.family, p.rated_chip_power_w,
        coalesce(p.rated_chip_power_w, w.rated_chip_power_w) AS highest_chip_power_w,  -- half a chip draws no more than all of it
        CASE
            WHEN p.family IN ({ipu_families}) THEN 'IPU'
            WHEN p.family LIKE 'NVIDIA %' OR p.family LIKE 'AMD CDNA%' THEN 'GPU'
        END AS kind,
        coalesce(r.energy_per_item_j, 1 / r.efficiency) AS joules,
        r.power_scope IN ('device', 'board', 'package') AS of_chips,
        CASE WHEN regexp_matches(r.conditions, '(?i)\bper (IPU|GPU|GCD)\b') THEN 1 ELSE r.chips END AS energy_chips
    FROM measurements r
    LEFT JOIN ratings p ON p.chip = r.chip
    LEFT JOIN ratings w ON concat(w.chip, ' GCD') = r.chip
    WHERE r.energy_per_item_j IS NOT NULL OR r.efficiency IS NOT NULL
)
SELECT
    origin, publisher, relationship, task, network, variant, item, kind, platform, chip, chips, framework, sdk_version,
    effective_precision, batch_size, throughput, joules AS energy_per_item_j,
    CASE WHEN energy_per_item_j IS NOT NULL THEN 'energy per item' ELSE 'efficiency' END AS basis, power_scope,
    CASE WHEN of_chips THEN energy_chips END AS energy_chips,
    joules * throughput AS implied_power_w, CASE WHEN of_chips THEN energy_chips * rated_chip_power_w END AS rated_w,
    joules * throughput > CASE WHEN of_chips THEN energy_chips * highest_chip_power_w END AS above_rating, error_rules,
    CAST(NULL AS VARCHAR) AS second_reading, CAST(NULL AS DOUBLE) AS second_energy_per_item_j,
    CAST(NULL AS DOUBLE) AS second_implied_power_w,
    conditions, errors, document_id, result_id
FROM rows
LEFT JOIN rules USING (result_id)
