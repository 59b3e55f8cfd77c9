-- The multiple that the page's seconds, read as one calculation, give over the blog's GPU hours; then the seconds
-- per window that each of the chart's two multiples needs.
WITH facts AS (
    SELECT
        gpu.value AS hours, gpu.claim_id AS gpu_claim, chart.claim_id AS chart_claim,
        regexp_extract(chart.dataset_printed, '(\d+) calculations in a sliding window', 1)::DOUBLE AS windows
    FROM printed AS gpu
    CROSS JOIN printed AS chart
    WHERE gpu.claim_id = 'blog2020-mcmc-gpu-time' AND chart.claim_id = 'sdk14-mcmc-speedup-17'
)
SELECT value, baseline, arithmetic, inputs
FROM (
    SELECT
        1 AS place, f.hours * 3600 / (f.windows * t.value) AS value,
        'IPU-M2000 over the latest GPU, SDK ' || r.sdk_version AS baseline,
        printf(
            '%g h × 3600 / (%g × %g s) = %.2f', f.hours, f.windows, t.value,
            f.hours * 3600 / (f.windows * t.value)
        ) AS arithmetic,
        ['results:' || r.result_id, 'claims:' || f.gpu_claim, 'claims:' || f.chart_claim] AS inputs
    FROM results AS r
    JOIN figures AS t ON t.result_id = r.result_id AND t.metric = 'time_to_result_s'
    CROSS JOIN facts AS f
    WHERE r.document_id = 'graphcore-performance-2023-07-04' AND r.table_name = 'pod_time_to_result'
        AND r.platform = 'IPU-M2000' AND r.model_printed = 'MCMC TFP'
    UNION ALL
    SELECT
        2, f.hours * 3600 / (f.windows * p.value), 'seconds per window that ' || p.figure || ' needs',
        printf(
            '%g h × 3600 / (%g × %g) = %.1f s', f.hours, f.windows, p.value, f.hours * 3600 / (f.windows * p.value)
        ),
        ['claims:' || p.claim_id, 'claims:' || f.gpu_claim, 'claims:' || f.chart_claim]
    FROM printed AS p
    CROSS JOIN facts AS f
    WHERE p.claim_id IN ('sdk14-mcmc-speedup-17', 'sdk14-mcmc-speedup-27')
) AS told
ORDER BY place, value DESC
