-- Throughput of IPU-M2000 at its lowest latency over the highest of one A100 at any batch, by framework of the IPU and
-- precision of the GPU. The chart's GPU ran Google's code in FP32; NVIDIA's rows are used in its place.
WITH ipus AS (
    SELECT i.*
    FROM claim AS c
    JOIN results AS i ON i.model_printed = c.model_printed AND i.platform = c.subject
    WHERE i.document_id = 'graphcore-performance-2023-07-04' AND i.table_name = 'pod_inference'
    QUALIFY i.latency_ms = min(i.latency_ms) OVER (PARTITION BY i.framework)
),
gpus AS (
    SELECT a.*
    FROM claim AS c
    JOIN results AS a ON a.model_printed = c.model_printed
    WHERE a.document_id = 'nvidia-a100-comparators' AND a.task = 'inference'
    QUALIFY a.throughput = max(a.throughput) OVER (PARTITION BY a.precision_printed)
)
SELECT
    i.throughput / a.throughput AS value,
    a.platform || ', ' || a.framework || ', ' || a.precision_printed || ', batch ' || a.batch_size || ', of '
        || a.published_on || '; IPU-M2000 with ' || i.framework || ', batch ' || i.batch_size || ', SDK ' || i.sdk_version
        AS baseline,
    printf('%g / %g = %.2f', i.throughput, a.throughput, i.throughput / a.throughput) AS arithmetic,
    ['results:' || i.result_id, 'results:' || a.result_id] AS inputs,
    'NVIDIA''s own rows of 2022 for a GPU that the claim leaves unnamed and that ran Google''s code' AS stand_in
FROM ipus AS i
CROSS JOIN gpus AS a
ORDER BY a.precision_printed DESC, i.framework, a.result_id, i.result_id
