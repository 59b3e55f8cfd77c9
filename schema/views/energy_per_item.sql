WITH rows AS (
    SELECT
        r.*, p.family, p.rated_chip_power_w,
        CASE
            WHEN p.family IN ('Mk1', 'Classic', 'Bow', 'C600') THEN 'IPU'
            WHEN p.family LIKE 'NVIDIA %' OR p.family LIKE 'AMD CDNA%' THEN 'GPU'
        END AS kind,
        coalesce(r.energy_per_item_j, 1 / r.efficiency) AS joules,
        r.power_scope IN ('device', 'board', 'package') AS of_chips
    FROM measurements r
    LEFT JOIN (
        SELECT chip, any_value(family) AS family, max(rated_chip_power_w) AS rated_chip_power_w
        FROM platforms
        GROUP BY chip
    ) p ON p.chip = r.chip
    WHERE r.origin <> 'emulated' AND (r.energy_per_item_j IS NOT NULL OR r.efficiency IS NOT NULL)
)
SELECT
    origin, publisher, relationship, task, network, variant, item, kind, platform, chip, chips, framework, sdk_version,
    effective_precision, batch_size, throughput, joules AS energy_per_item_j,
    if(energy_per_item_j IS NOT NULL, 'energy per item', 'efficiency') AS basis, power_scope,
    joules * throughput AS implied_power_w, if(of_chips, chips * rated_chip_power_w, NULL) AS rated_w,
    joules * throughput > if(of_chips, chips * rated_chip_power_w, NULL) AS above_rating,
    conditions, errors, document_id, result_id
FROM rows
