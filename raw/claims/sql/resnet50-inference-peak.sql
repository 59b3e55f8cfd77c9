-- The best row of each framework on the later page without an error flag; the claim names no batch.
SELECT
    throughput AS value,
    'IPU-M2000 with ' || framework || ', SDK ' || sdk_version || ', batch ' || batch_size AS baseline,
    printf('best of the batches: %g', throughput) AS arithmetic
FROM results AS r
WHERE document_id = 'graphcore-performance-2023-07-04' AND table_name = 'pod_inference'
    AND platform = 'IPU-M2000' AND model = 'ResNet-50 v1.5'
    AND NOT EXISTS (SELECT 1 FROM flags AS f WHERE f.result_id = r.result_id AND f.severity = 'error')
QUALIFY row_number() OVER (PARTITION BY framework ORDER BY throughput DESC, result_id) = 1
ORDER BY throughput DESC, framework
