-- How many A100 an IPU-M2000 equals in ResNet-50 training: by the two claims together, and by the rows of SDK 2.4.0
-- over each A100 row that may stand in for the chart's.
SELECT value, baseline, arithmetic, inputs
FROM (
    SELECT
        0 AS place, '' AS result_id, old.value * gain.value AS value,
        'both claims together' AS baseline,
        printf('%g × %g = %.2f', old.value, gain.value, old.value * gain.value) AS arithmetic,
        ['claims:' || old.claim_id, 'claims:' || gain.claim_id] AS inputs
    FROM printed AS old
    CROSS JOIN printed AS gain
    WHERE old.claim_id = 'sdk14-resnet50-training-throughput' AND gain.claim_id = 'mlperf2021-sdk-resnet50'
    UNION ALL
    SELECT
        CASE WHEN i.framework = 'TensorFlow1' THEN 1 ELSE 2 END, a.result_id, i.throughput / a.throughput,
        a.platform || ', ' || a.framework || ', mixed' || if(a.conditions = 'compiled by XLA', ' + XLA', '') || '; IPU-M2000 with '
            || i.framework || ', SDK ' || i.sdk_version,
        printf('%g / %g = %.2f', i.throughput, a.throughput, i.throughput / a.throughput),
        ['results:' || i.result_id, 'results:' || a.result_id]
    FROM results AS i
    CROSS JOIN results AS a
    WHERE i.document_id = 'graphcore-performance-2023-07-04' AND i.table_name = 'pod_training'
        AND i.platform = 'IPU-M2000' AND i.model_printed = 'ResNet-50 v1.5'
        AND a.document_id = 'nvidia-a100-comparators' AND a.task = 'training' AND a.chip_count = 1
        AND a.model_printed = 'ResNet-50 v1.5' AND a.precision_printed = 'mixed'
        AND (a.framework = 'TensorFlow1' OR a.chip = 'A100-SXM-80GB')
) AS told
ORDER BY place, value DESC, result_id, arithmetic
