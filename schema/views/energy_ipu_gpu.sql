SELECT
    i.publisher, i.task, i.model, g.model AS gpu_model, i.item, i.batch_size, i.chip_count,
    i.platform AS ipu_platform, i.chip AS ipu_chip, i.power_scope AS ipu_power_scope,
    i.energy_per_item_j AS ipu_energy_per_item_j, i.throughput AS ipu_throughput, i.implied_power_w AS ipu_implied_power_w,
    i.rated_w AS ipu_rated_w,
    g.platform AS gpu_platform, g.chip AS gpu_chip, g.power_scope AS gpu_power_scope,
    g.energy_per_item_j AS gpu_energy_per_item_j, g.throughput AS gpu_throughput, g.implied_power_w AS gpu_implied_power_w,
    g.rated_w AS gpu_rated_w,
    g.energy_per_item_j / i.energy_per_item_j AS energy_ratio,
    g.rated_w / g.throughput / i.energy_per_item_j AS energy_ratio_at_gpu_rating, i.throughput / g.throughput AS throughput_ratio,
    i.framework AS ipu_framework, g.framework AS gpu_framework, i.conditions AS ipu_conditions,
    g.conditions AS gpu_conditions, i.usable AND g.usable AS usable, i.document_id,
    i.result_id AS ipu_result_id, g.result_id AS gpu_result_id
FROM energy_per_item i
JOIN energy_per_item g
    ON g.document_id = i.document_id AND g.task = i.task AND g.item = i.item
    AND regexp_replace(g.model, ' v[\d.]+$', '') = regexp_replace(i.model, ' v[\d.]+$', '')
    AND g.variant IS NOT DISTINCT FROM i.variant AND g.batch_size = i.batch_size AND g.chip_count = i.chip_count
WHERE i.kind = 'IPU' AND g.kind = 'GPU' AND i.usable AND g.usable
