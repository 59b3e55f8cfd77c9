-- The best row of each framework on the later page without an error flag; the claim names no batch. The claim is on
-- synthetic data, the baseline says where the page's data comes from.
SELECT
    throughput AS value,
    'IPU-M2000 with ' || r.framework || ', SDK ' || r.sdk_version || ', batch ' || r.batch_size || ', ' || r.dataset_printed
        AS baseline,
    printf('best of the batches: %g', throughput) AS arithmetic,
    ['results:' || r.result_id] AS inputs
FROM results AS r
WHERE r.document_id = 'graphcore-performance-2023-07-04' AND table_name = 'pod_inference'
    AND r.platform = 'IPU-M2000' AND r.model_printed = 'ResNet-50 v1.5'
    AND NOT EXISTS (SELECT 1 FROM flags AS f WHERE f.result_id = r.result_id AND f.severity = 'error')
QUALIFY row_number() OVER (PARTITION BY r.framework ORDER BY throughput DESC, r.result_id) = 1
ORDER BY throughput DESC, r.framework
