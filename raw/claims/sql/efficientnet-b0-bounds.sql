-- What each of the chart's two bounds on EfficientNet-B0 inference says of the other, with one batch in flight on each
-- side (4 images against 1, the smallest batches of the chart).
WITH claimed AS (
    SELECT
        throughput.value AS faster, latency.value AS sooner,
        ['claims:' || throughput.claim_id, 'claims:' || latency.claim_id] AS inputs,
        regexp_extract(latency.batch, '^(\d+) to', 1)::DOUBLE AS ipu_batch,
        regexp_extract(latency.batch, '; (\d+) to', 1)::DOUBLE AS gpu_batch
    FROM printed AS throughput
    CROSS JOIN printed AS latency
    WHERE throughput.claim_id = 'sdk14-efficientnet-b0-inference-throughput'
        AND latency.claim_id = 'sdk14-efficientnet-b0-inference-latency'
)
SELECT value, baseline, arithmetic, inputs
FROM (
    SELECT
        1 AS place, faster * gpu_batch / ipu_batch AS value, 'latency ratio from the throughput claim' AS baseline,
        printf('%g × %g / %g = %g', faster, gpu_batch, ipu_batch, faster * gpu_batch / ipu_batch) AS arithmetic, inputs
    FROM claimed
    UNION ALL
    SELECT
        2, sooner * ipu_batch / gpu_batch, 'throughput ratio from the latency claim',
        printf('%g × %g / %g = %g', sooner, ipu_batch, gpu_batch, sooner * ipu_batch / gpu_batch), inputs
    FROM claimed
) AS told
ORDER BY place
