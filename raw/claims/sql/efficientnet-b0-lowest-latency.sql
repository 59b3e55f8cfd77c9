-- Lowest latency of one A100 over that of IPU-M2000, framework by framework. The chart's GPU ran Google's code in FP32;
-- NVIDIA's rows of batch 1, in TF32 and in FP16, are used in its place.
SELECT
    a.latency_ms / i.latency_ms AS value,
    a.platform || ', ' || a.framework || ', ' || a.precision_printed || ', batch ' || a.batch_size || ', of '
        || a.published_on || '; IPU-M2000 with ' || i.framework || ', batch ' || i.batch_size || ', SDK ' || i.sdk_version
        AS baseline,
    printf('%g ms / %g ms = %.2f', a.latency_ms, i.latency_ms, a.latency_ms / i.latency_ms) AS arithmetic,
    ['results:' || a.result_id, 'results:' || i.result_id] AS inputs,
    'NVIDIA''s own rows of 2022 for a GPU that the claim leaves unnamed and that ran Google''s code' AS stand_in
FROM claim AS c
JOIN results AS i ON i.model_printed = c.model_printed AND i.platform = c.subject
JOIN results AS a ON a.model_printed = c.model_printed
WHERE i.document_id = 'graphcore-performance-2023-07-04' AND i.table_name = 'pod_inference'
    AND a.document_id = 'nvidia-a100-comparators' AND a.task = 'inference' AND a.batch_size = 1
QUALIFY i.latency_ms = min(i.latency_ms) OVER (PARTITION BY i.framework)
ORDER BY a.precision_printed DESC, i.framework, a.result_id, i.result_id
