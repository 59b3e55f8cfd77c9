-- Group-16 rows of SDK 2.4.0 over the chart's GPU bar. NVIDIA published no A100 row of this network before
-- the claims.
SELECT
    i.throughput / g.value AS value,
    'the chart''s GPU bar, FP32; IPU-M2000 ' || i.variant || ' with ' || i.framework || ', ' || i.precision_printed
        || ', SDK ' || i.sdk_version AS baseline,
    printf('%g / %g = %.2f', i.throughput, g.value, i.throughput / g.value) AS arithmetic,
    ['results:' || i.result_id, 'claims:' || g.claim_id] AS inputs
FROM results AS i
CROSS JOIN printed AS g
WHERE i.document_id = 'graphcore-performance-2023-07-04' AND i.table_name = 'pod_training'
    AND i.platform = 'IPU-M2000' AND i.model_printed = 'EfficientNet-B4'
    AND g.claim_id = 'sdk14-efficientnet-b4-training-gpu'
ORDER BY i.framework DESC, i.result_id
