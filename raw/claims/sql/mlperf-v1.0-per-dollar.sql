-- Minutes times list price of NVIDIA's one-node DGX A100 over those of the IPU-POD16, closed division; of the claim's
-- model, or of both if it names none. Prices are claims of the same document, and no other source has them.
SELECT
    gpu.minutes * dgx_price.value / (ipu.minutes * pod_price.value) AS value,
    gpu.platform || ', ' || gpu.chip_count || ' ' || gpu.chip_printed || ', MLPerf Training ' || ipu.round || ' closed '
        || ipu.benchmark || '; per dollar is not an MLPerf metric' AS baseline,
    printf(
        '(%.4f min × %.0f USD) / (%.4f min × %.0f USD) = %.4f', gpu.minutes, dgx_price.value, ipu.minutes,
        pod_price.value, gpu.minutes * dgx_price.value / (ipu.minutes * pod_price.value)
    ) AS arithmetic,
    [
        'mlperf_entries:' || gpu.round || '/' || gpu.path, 'mlperf_entries:' || ipu.round || '/' || ipu.path,
        'claims:' || dgx_price.claim_id, 'claims:' || pod_price.claim_id
    ] AS inputs
FROM claim AS c
CROSS JOIN mlperf_entries AS ipu
JOIN mlperf_entries AS gpu
    ON (gpu.round, gpu.division, gpu.benchmark) = (ipu.round, ipu.division, ipu.benchmark)
JOIN results AS r ON r.result_id = ipu.result_id
CROSS JOIN printed AS pod_price
CROSS JOIN printed AS dgx_price
WHERE ipu.round = '1.0' AND ipu.division = 'closed' AND ipu.submitter = 'Graphcore' AND ipu.platform = 'IPU-POD16'
    AND gpu.submitter = 'NVIDIA' AND gpu.chip_count = 8 AND gpu.nodes = 1
    AND pod_price.claim_id = 'mlperf2021-pod16-price' AND dgx_price.claim_id = 'mlperf2021-dgx-price'
    AND r.model_printed = coalesce(nullif(c.model_printed, ''), r.model_printed)
ORDER BY ipu.benchmark DESC, gpu.path
