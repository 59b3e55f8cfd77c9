-- Group-16 training rows of SDK 2.4.0 over what the charts of SDK 1.4 claim: a multiple of their GPU bar.
SELECT
    i.throughput / (old.value * bar.value) AS value,
    printf('SDK 1.4 as %g × %g; IPU-M2000 ', old.value, bar.value) || i.variant || ' with ' || i.framework || ', '
        || i.precision_printed || ', SDK ' || i.sdk_version AS baseline,
    printf(
        '%g / (%g × %g) = %.2f', i.throughput, old.value, bar.value, i.throughput / (old.value * bar.value)
    ) AS arithmetic,
    ['results:' || i.result_id, 'claims:' || old.claim_id, 'claims:' || bar.claim_id] AS inputs
FROM results AS i
CROSS JOIN printed AS old
CROSS JOIN printed AS bar
WHERE i.document_id = 'graphcore-performance-2023-07-04' AND i.table_name = 'pod_training'
    AND i.platform = 'IPU-M2000' AND i.model_printed = 'EfficientNet-B4'
    AND old.claim_id = 'sdk14-efficientnet-b4-training-optimised'
    AND bar.claim_id = 'sdk14-efficientnet-b4-training-gpu'
ORDER BY i.framework DESC, i.result_id
