-- Smallest batch of each, 4 and 1, against every A100 row.
SELECT
    i.throughput / (1000 * a.batch_size / a.latency_ms) AS value,
    a.platform || ', ' || a.framework || ' ' || a.sdk_version || ', ' || a.precision_printed || ', ' || a.variant
        || ', batch ' || a.batch_size || '; IPU-M2000 batch ' || i.batch_size || ', SDK ' || i.sdk_version AS baseline,
    printf(
        '%g / (1000 × %d / %g) = %.2f', i.throughput, a.batch_size, a.latency_ms,
        i.throughput / (1000 * a.batch_size / a.latency_ms)
    ) AS arithmetic,
    ['results:' || i.result_id, 'results:' || a.result_id] AS inputs
FROM results AS i
JOIN results AS a ON a.model_printed = i.model_printed AND a.variant = i.variant
WHERE i.document_id = 'graphcore-performance-2023-07-04' AND i.table_name = 'pod_inference'
    AND i.platform = 'IPU-M2000' AND i.model_printed = 'BERT-Large' AND i.batch_size = 4
    AND a.document_id = 'nvidia-a100-comparators' AND a.task = 'inference' AND a.batch_size = 1
ORDER BY a.precision_printed DESC, a.result_id, i.result_id
