-- What is left of the claimed peak under SDK 2.4.0: the best ResNet-50 inference row of an IPU-M2000 over it.
SELECT
    max(r.throughput) / p.value AS value,
    'IPU-M2000 with ' || arg_max(r.framework, r.throughput) || ', SDK ' || arg_max(r.sdk_version, r.throughput)
        || ', batch ' || arg_max(r.batch_size, r.throughput) AS baseline,
    printf('%g / %g = %.3f', max(r.throughput), p.value, max(r.throughput) / p.value) AS arithmetic,
    ['results:' || arg_max(r.result_id, r.throughput), 'claims:' || p.claim_id] AS inputs
FROM results AS r
CROSS JOIN printed AS p
WHERE r.document_id = 'graphcore-performance-2023-07-04' AND r.table_name = 'pod_inference'
    AND r.platform = 'IPU-M2000' AND r.model_printed = 'ResNet-50 v1.5'
    AND NOT EXISTS (SELECT 1 FROM flags AS f WHERE f.result_id = r.result_id AND f.severity = 'error')
    AND p.claim_id = 'blog2020-resnet50-inference-peak'
GROUP BY p.value, p.claim_id
ORDER BY value
