WITH ratings AS (
    SELECT chip, max(family) AS family, max(rated_chip_power_w) AS rated_chip_power_w
    FROM platforms
    GROUP BY chip
),
rows AS (
    SELECT
        r.*, p.family, p.rated_chip_power_w,
        CASE
            WHEN p.family IN ({ipu_families}) THEN 'IPU'
            WHEN p.family LIKE 'NVIDIA %' OR p.family LIKE 'AMD CDNA%' THEN 'GPU'
        END AS kind,
        coalesce(f.value, 1 / r.efficiency) AS joules,
        r.power_scope IN ('device', 'board', 'package') AS of_chips,
        CASE WHEN regexp_matches(r.conditions, '(?i)\bper (IPU|GPU|GCD)\b') THEN 1 ELSE r.chip_count END
            AS energy_chip_count
    FROM measurements r
    LEFT JOIN figures f ON f.result_id = r.result_id AND f.metric = 'energy_per_item_j'
    LEFT JOIN ratings p ON p.chip = r.chip
    WHERE r.errors = 0 AND (f.value IS NOT NULL OR r.efficiency IS NOT NULL)
)
SELECT
    origin, publisher, relationship, interest, task, model, variant, item, kind, platform, chip, chip_count, framework, sdk_version,
    precision, batch_size, throughput, power_scope, joules AS energy_per_item_j,
    CASE WHEN of_chips THEN energy_chip_count END AS energy_chip_count,
    joules * throughput AS implied_power_w, CASE WHEN of_chips THEN energy_chip_count * rated_chip_power_w END AS rated_w,
    conditions, usable, document_id, result_id
FROM rows
