-- Minutes times list price of NVIDIA's one-node DGX A100 over those of the IPU-POD16, closed division; of the claim's
-- model, or of both if it names none. Prices are those of platforms, which has both from this document.
SELECT
    gpu.minutes * dgx.list_price_usd / (ipu.minutes * pod.list_price_usd) AS value,
    gpu.system || ', ' || gpu.accelerators || ' ' || gpu.accelerator || ', MLPerf Training ' || ipu.round || ' closed '
        || ipu.benchmark || '; per dollar is not an MLPerf metric' AS baseline,
    printf(
        '(%.4f min × %.0f USD) / (%.4f min × %.0f USD) = %.4f', gpu.minutes, dgx.list_price_usd, ipu.minutes,
        pod.list_price_usd, gpu.minutes * dgx.list_price_usd / (ipu.minutes * pod.list_price_usd)
    ) AS arithmetic,
    [
        'mlperf_entries:' || gpu.round || '/' || gpu.path, 'mlperf_entries:' || ipu.round || '/' || ipu.path,
        'platforms:' || dgx.platform, 'platforms:' || pod.platform
    ] AS inputs
FROM claim AS c
CROSS JOIN mlperf_entries AS ipu
JOIN mlperf_entries AS gpu USING (round, division, benchmark)
JOIN results AS r ON r.result_id = ipu.result_id
JOIN platforms AS pod ON pod.platform = ipu.system
CROSS JOIN platforms AS dgx
WHERE ipu.round = '1.0' AND ipu.division = 'closed' AND ipu.submitter = 'Graphcore' AND ipu.system = 'IPU-POD16'
    AND gpu.submitter = 'NVIDIA' AND gpu.accelerators = dgx.chip_count AND dgx.platform = '8x A100-80GB (DGX A100)'
    AND r.model = coalesce(nullif(c.model, ''), r.model)
ORDER BY ipu.benchmark DESC, gpu.path
