-- Group-16 rows of SDK 2.4.0 over the chart's GPU bar and over every one-GPU A100 row of the model; those of the
-- precision that the claim names for the GPU, if it names one.
WITH gpus AS (
    SELECT
        0 AS place, value AS throughput, 'FP32' AS compute_precision, 'the chart''s GPU bar, FP32' AS name
    FROM printed
    WHERE claim_id = 'sdk14-efficientnet-b4-training-gpu'
    UNION ALL
    SELECT
        row_number() OVER (ORDER BY a.throughput, a.result_id), a.throughput, a.compute_precision,
        a.platform || ', ' || a.framework || ', ' || a.compute_precision || ', of ' || a.published_on
    FROM results AS a
    WHERE a.document_id = 'nvidia-a100-comparators' AND a.task = 'training' AND a.chip_count = 1
        AND a.model = 'EfficientNet-B4'
)
SELECT
    i.throughput / g.throughput AS value,
    g.name || '; IPU-M2000 ' || i.variant || ' with ' || i.framework || ', ' || i.precision || ', SDK '
        || i.sdk_version AS baseline,
    printf('%g / %g = %.2f', i.throughput, g.throughput, i.throughput / g.throughput) AS arithmetic
FROM claim AS c
CROSS JOIN results AS i
CROSS JOIN gpus AS g
WHERE i.document_id = 'graphcore-performance-2023-07-04' AND i.table_name = 'pod_training'
    AND i.platform = 'IPU-M2000' AND i.model = 'EfficientNet-B4'
    AND (
        coalesce(c.precision, '') NOT LIKE '%(GPU)%'
        OR c.precision LIKE '%' || g.compute_precision || ' (GPU)%'
    )
ORDER BY g.place, i.framework DESC, i.result_id
