SELECT
    r.origin, r.publisher, r.relationship, r.task, r.network, r.variant, r.phase, r.sequence_length, r.item,
    CASE WHEN r.chip IN (SELECT chip FROM results WHERE publisher = 'Graphcore' AND relationship = 'vendor') THEN 'IPU'
        WHEN p.family LIKE 'NVIDIA%' OR r.chip LIKE 'MI%' OR r.chip SIMILAR TO '[AGHV]H?[0-9]{2,3}.*' THEN 'GPU' END AS kind,
    r.platform, r.chip, r.chips, r.framework, r.sdk_version, r.effective_precision, r.batch_size, r.throughput,
    coalesce(r.energy_per_item_j, 1 / r.efficiency) AS energy_per_item_j,
    if(r.energy_per_item_j IS NOT NULL, 'energy per item', 'efficiency') AS basis,
    r.power_scope,
    energy_per_item_j * r.throughput / if(r.power_scope IN ('device', 'board', 'package'), r.chips, 1) AS implied_power_w,
    p.rated_power_w,
    if(r.power_scope IN ('device', 'board', 'package'), p.rated_power_w / p.chip_count, p.rated_power_w) AS rated_scope_w
FROM measurements r LEFT JOIN platforms p USING (platform)
