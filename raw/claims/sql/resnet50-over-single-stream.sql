-- IPU-M2000 at its lowest latency, framework by framework, over one A100 that runs one image at a time in MLPerf Inference
-- v0.7 (TensorRT 7.2, INT8, mean latency). The chart names an A100 80GB and NVIDIA's page of that day instead.
SELECT
    i.throughput * f.value / 1e9 AS value,
    f.subject || '; IPU-M2000 with ' || i.framework || ', batch ' || i.batch_size || ', SDK ' || i.sdk_version AS baseline,
    printf('%g × %g ns / 10^9 ns = %.2f', i.throughput, f.value, i.throughput * f.value / 1e9) AS arithmetic,
    ['results:' || i.result_id, 'facts:' || f.fact_id] AS inputs
FROM (
    SELECT *
    FROM results
    WHERE document_id = 'graphcore-performance-2023-07-04' AND table_name = 'pod_inference'
        AND platform = 'IPU-M2000' AND model_printed = 'ResNet-50 v1.5'
    QUALIFY latency_ms = min(latency_ms) OVER (PARTITION BY framework)
) AS i
CROSS JOIN detail.facts AS f
WHERE f.document_id = 'mlperf-inference-v0.7-resnet50-single-stream' AND f.property = 'mean latency'
ORDER BY i.framework, f.fact_id, i.result_id
