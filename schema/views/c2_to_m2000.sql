WITH c2 AS (
    SELECT * FROM detail.resnext101
    WHERE origin = 'published' AND publisher = 'Qwant' AND platform = 'C2' AND model = 'ResNeXt101-32x4d'
),
m2000 AS (
    SELECT * FROM detail.resnext101
    WHERE origin = 'published' AND publisher = 'Graphcore' AND platform = 'IPU-M2000' AND model = 'ResNeXt101-32x4d'
),
pairs AS (
    SELECT
        CASE
            WHEN c.result_id IS NULL THEN 'IPU-M2000 alone'
            WHEN m.result_id IS NULL THEN 'C2 alone'
            ELSE 'equal micro-batch'
        END AS pairing,
        c.result_id AS c2_result_id, m.result_id AS m2000_result_id
    FROM c2 c
    FULL JOIN m2000 m USING (micro_batch_size)
    UNION ALL
    SELECT 'best of each', c.result_id, m.result_id
    FROM (SELECT result_id FROM c2 WHERE usable ORDER BY throughput_per_chip DESC, result_id LIMIT 1) c
    CROSS JOIN (SELECT result_id FROM m2000 WHERE usable ORDER BY throughput_per_chip DESC, result_id LIMIT 1) m
)
SELECT
    q.pairing, 'ResNeXt101-32x4d' AS model,
    c.micro_batch_size AS c2_micro_batch_size, m.micro_batch_size AS m2000_micro_batch_size,
    c.throughput_per_chip AS c2_throughput_per_chip, m.throughput_per_chip AS m2000_throughput_per_chip,
    m.throughput_per_chip / c.throughput_per_chip AS ratio,
    pm.tiles_per_chip * pm.clock_ghz / (pc.tiles_per_chip * pc.clock_ghz) AS tile_cycles_ratio,
    pm.peak_fp16_tflops / pc.peak_fp16_tflops AS peak_ratio,
    ratio / peak_ratio AS ratio_over_peak,
    1000 * c.batch_size / c.throughput AS c2_batch_period_ms,
    1000 * m.batch_size / m.throughput AS m2000_batch_period_ms,
    c.latency_ms AS c2_latency_ms, m.latency_ms AS m2000_latency_ms,
    c.batches_in_flight AS c2_batches_in_flight, m.batches_in_flight AS m2000_batches_in_flight,
    c.framework AS c2_framework, m.framework AS m2000_framework,
    c.sdk_version AS c2_sdk_version, m.sdk_version AS m2000_sdk_version,
    c.precision AS c2_precision, m.precision AS m2000_precision,
    c.dataset AS c2_dataset, m.dataset AS m2000_dataset,
    coalesce(c.usable, TRUE) AND coalesce(m.usable, TRUE) AS usable,
    q.c2_result_id, q.m2000_result_id
FROM pairs q
LEFT JOIN c2 c ON c.result_id = q.c2_result_id
LEFT JOIN m2000 m ON m.result_id = q.m2000_result_id
LEFT JOIN platforms pc ON pc.platform = c.platform
LEFT JOIN platforms pm ON pm.platform = m.platform
