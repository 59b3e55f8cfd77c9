-- Images per second that the chart's multiple makes of the A100 row its notes describe (40 GB, PyTorch, mixed), and
-- the row of SDK 2.4.0 at the same batch as a share of that.
SELECT value, baseline, arithmetic, inputs
FROM (
    SELECT
        1 AS place, p.value * a.throughput AS value,
        'IPU-M2000 of SDK 1.4 in images/s, by ' || a.platform || ', ' || a.framework || ', '
            || a.precision_printed AS baseline,
        printf('%g × %g = %.0f', p.value, a.throughput, p.value * a.throughput) AS arithmetic,
        ['claims:' || p.claim_id, 'results:' || a.result_id] AS inputs
    FROM printed AS p
    CROSS JOIN results AS a
    WHERE p.claim_id = 'sdk14-resnext101-training-throughput'
        AND a.document_id = 'nvidia-a100-comparators' AND a.task = 'training' AND a.model_printed = 'ResNeXt101-32x4d'
        AND a.platform = '1x A100-40GB (DGX A100)' AND a.framework = 'PyTorch' AND a.precision_printed = 'mixed'
    UNION ALL
    SELECT
        2, i.throughput / (p.value * a.throughput),
        'share of it under SDK ' || i.sdk_version || ', batch ' || i.batch_size,
        printf(
            '%g / (%g × %g) = %.2f', i.throughput, p.value, a.throughput, i.throughput / (p.value * a.throughput)
        ),
        ['claims:' || p.claim_id, 'results:' || a.result_id, 'results:' || i.result_id]
    FROM printed AS p
    CROSS JOIN results AS a
    CROSS JOIN results AS i
    WHERE p.claim_id = 'sdk14-resnext101-training-throughput'
        AND a.document_id = 'nvidia-a100-comparators' AND a.task = 'training' AND a.model_printed = 'ResNeXt101-32x4d'
        AND a.platform = '1x A100-40GB (DGX A100)' AND a.framework = 'PyTorch' AND a.precision_printed = 'mixed'
        AND i.document_id = 'graphcore-performance-2023-07-04' AND i.table_name = 'pod_training'
        AND i.platform = 'IPU-M2000' AND i.model_printed = 'ResNeXt101'
) AS told
ORDER BY place, value
