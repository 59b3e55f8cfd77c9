-- The chart's two IPU bars over its GPU bar and over every one-GPU A100 row of the model; those of the precision that
-- the claim names for the GPU, if it names one.
WITH ipus AS (
    SELECT claim_id, value AS throughput
    FROM printed
    WHERE claim_id IN ('sdk14-efficientnet-b4-training-m2000-a', 'sdk14-efficientnet-b4-training-m2000-b')
),
gpus AS (
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
    g.name AS baseline,
    printf('%g / %g = %.2f', i.throughput, g.throughput, i.throughput / g.throughput) AS arithmetic
FROM claim AS c
CROSS JOIN ipus AS i
CROSS JOIN gpus AS g
WHERE coalesce(c.precision, '') NOT LIKE '%(GPU)%'
    OR c.precision LIKE '%' || g.compute_precision || ' (GPU)%'
ORDER BY g.place, i.throughput, i.claim_id
