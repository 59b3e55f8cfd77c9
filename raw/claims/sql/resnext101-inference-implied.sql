-- Throughput that the latency claim implies with one batch in flight (4 images against 1, the smallest batches of the
-- chart), and latency that the throughput claim implies with as many in flight as the page's TensorFlow row has.
WITH claimed AS (
    SELECT
        throughput.value AS faster, latency.value AS sooner,
        ['claims:' || throughput.claim_id, 'claims:' || latency.claim_id] AS inputs,
        regexp_extract(latency.batch, '^(\d+) to', 1)::DOUBLE AS ipu_batch,
        regexp_extract(latency.batch, '; (\d+) to', 1)::DOUBLE AS gpu_batch
    FROM printed AS throughput
    CROSS JOIN printed AS latency
    WHERE throughput.claim_id = 'sdk14-resnext101-inference-throughput'
        AND latency.claim_id = 'sdk14-resnext101-inference-latency'
),
page AS (
    SELECT result_id, throughput * latency_ms / 1000 / batch_size AS in_flight
    FROM results
    WHERE document_id = 'graphcore-performance-2023-07-04' AND table_name = 'pod_inference' AND platform = 'IPU-M2000'
        AND model_printed = 'ResNeXt101' AND framework LIKE 'TensorFlow%' AND batch_size = 4
)
SELECT
    sooner * ipu_batch / gpu_batch AS value, 'throughput implied by the latency claim, one batch in flight' AS baseline,
    printf('%g × %g / %g = %g', sooner, ipu_batch, gpu_batch, sooner * ipu_batch / gpu_batch) AS arithmetic, inputs
FROM claimed
UNION ALL
SELECT
    faster * gpu_batch / ipu_batch / in_flight,
    'latency implied by the throughput claim, batches in flight as in the page''s TensorFlow row',
    printf(
        '%g × %g / %g / %.2f = %.2f', faster, gpu_batch, ipu_batch, in_flight, faster * gpu_batch / ipu_batch / in_flight
    ),
    inputs || ['results:' || result_id]
FROM claimed
CROSS JOIN page
ORDER BY value DESC
