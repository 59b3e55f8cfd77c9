-- Smallest batch of each, 4 and 1, against every A100 row. One of another precision than the claim names is shown.
SELECT
    i.throughput / (1000 * a.batch_size / a.latency_ms) AS value,
    a.platform || ', ' || a.framework || ' ' || a.sdk_version || ', ' || a.compute_precision || ', ' || a.variant
        || ', batch ' || a.batch_size || '; IPU-M2000 batch ' || i.batch_size || ', SDK ' || i.sdk_version AS baseline,
    printf(
        '%g / (1000 × %d / %g) = %.2f', i.throughput, a.batch_size, a.latency_ms,
        i.throughput / (1000 * a.batch_size / a.latency_ms)
    ) AS arithmetic,
    ['results:' || i.result_id, 'results:' || a.result_id] AS inputs,
    CASE
        WHEN NOT meets_condition(c.precision, 'A100', a.compute_precision)
            THEN 'another precision of the A100 than the claim names'
    END AS shown_only
FROM claim AS c
CROSS JOIN results AS i
JOIN results AS a ON a.model = i.model AND a.variant = i.variant
WHERE i.document_id = 'graphcore-performance-2023-07-04' AND i.table_name = 'pod_inference'
    AND i.platform = 'IPU-M2000' AND i.model = 'BERT-Large' AND i.batch_size = 4
    AND a.document_id = 'nvidia-a100-comparators' AND a.task = 'inference' AND a.batch_size = 1
ORDER BY a.compute_precision DESC, a.result_id, i.result_id
