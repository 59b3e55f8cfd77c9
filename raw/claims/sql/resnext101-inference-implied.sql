-- Throughput that the latency claim implies with one batch in flight (4 images against 1, the smallest batches of the
-- chart); then both claims on the IPU figures they imply, against each batch-1 mixed-precision row of the A100.
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
gpus AS (
    SELECT
        throughput, latency_ms, compiler, result_id,
        platform || ', ' || framework || ', ' || compute_precision || coalesce(' + ' || compiler, '') || ', batch '
            || batch_size AS name
    FROM results
    WHERE document_id = 'nvidia-a100-comparators' AND task = 'inference' AND model = 'ResNeXt101-32x4d'
        AND batch_size = 1 AND compute_precision = 'mixed'
),
slowest AS (SELECT * FROM gpus ORDER BY throughput, result_id LIMIT 1)
SELECT value, baseline, arithmetic, inputs
FROM (
    SELECT
        1 AS place, '' AS result_id, sooner * ipu_batch / gpu_batch AS value,
        'throughput implied by the latency claim, one batch in flight' AS baseline,
        printf('%g × %g / %g = %g', sooner, ipu_batch, gpu_batch, sooner * ipu_batch / gpu_batch) AS arithmetic, inputs
    FROM claimed
    UNION ALL
    SELECT
        2, g.result_id, c.faster * s.throughput / g.throughput, 'throughput over ' || g.name,
        printf(
            '%g × %g / %g = %.1f', c.faster, s.throughput, g.throughput, c.faster * s.throughput / g.throughput
        ),
        c.inputs || ['results:' || s.result_id, 'results:' || g.result_id]
    FROM claimed AS c
    CROSS JOIN slowest AS s
    CROSS JOIN gpus AS g
    UNION ALL
    SELECT
        3, g.result_id, c.sooner * g.latency_ms / s.latency_ms, 'latency against ' || g.name,
        printf('%g × %g / %g = %.1f', c.sooner, g.latency_ms, s.latency_ms, c.sooner * g.latency_ms / s.latency_ms),
        c.inputs || ['results:' || s.result_id, 'results:' || g.result_id]
    FROM claimed AS c
    CROSS JOIN slowest AS s
    CROSS JOIN gpus AS g
) AS told
ORDER BY place, value DESC, result_id
