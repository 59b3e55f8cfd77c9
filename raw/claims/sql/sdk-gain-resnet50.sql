-- IPU-M2000 training rows of SDK 2.4.0 over what the charts of SDK 1.4 claim: a multiple of each A100 row that may
-- stand in for their baseline.
SELECT
    i.throughput / (old.value * a.throughput) AS value,
    printf('SDK 1.4 as %g × ', old.value) || a.platform || ', ' || a.framework || ', mixed'
        || coalesce(' + ' || a.compiler, '') || '; IPU-M2000 with ' || i.framework || ', SDK '
        || i.sdk_version AS baseline,
    printf(
        '%g / (%g × %g) = %.2f', i.throughput, old.value, a.throughput, i.throughput / (old.value * a.throughput)
    ) AS arithmetic
FROM results AS i
CROSS JOIN results AS a
CROSS JOIN printed AS old
WHERE i.document_id = 'graphcore-performance-2023-07-04' AND i.table_name = 'pod_training'
    AND i.platform = 'IPU-M2000' AND i.model = 'ResNet-50 v1.5'
    AND a.document_id = 'nvidia-a100-comparators' AND a.task = 'training' AND a.chip_count = 1
    AND a.model = 'ResNet-50 v1.5' AND a.compute_precision = 'mixed'
    AND (a.framework = 'TensorFlow1' OR a.chip = 'A100-80GB')
    AND old.claim_id = 'sdk14-resnet50-training-throughput'
ORDER BY i.framework DESC, a.published_on, a.result_id, i.result_id
