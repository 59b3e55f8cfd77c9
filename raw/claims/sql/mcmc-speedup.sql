-- The blog's GPU hours over the calculations in a sliding window of the chart's notes times the page's seconds, read as one calculation.
SELECT
    gpu.value * 3600 / (w.windows * t.value) AS value,
    printf('latest GPU, the blog''s %g hours; IPU-M2000 at %g windows, SDK ', gpu.value, w.windows)
        || r.sdk_version AS baseline,
    printf(
        '%g h × 3600 / (%g × %g s) = %.2f', gpu.value, w.windows, t.value,
        gpu.value * 3600 / (w.windows * t.value)
    ) AS arithmetic,
    ['results:' || r.result_id, 'claims:' || gpu.claim_id, 'claims:' || w.claim_id] AS inputs
FROM results AS r
JOIN figures AS t ON t.result_id = r.result_id AND t.metric = 'time_to_result_s'
CROSS JOIN printed AS gpu
CROSS JOIN (
    SELECT claim_id, regexp_extract(dataset_printed, '(\d+) calculations in a sliding window', 1)::DOUBLE AS windows
    FROM printed
    WHERE claim_id = 'sdk14-mcmc-speedup-17'
) AS w
WHERE r.document_id = 'graphcore-performance-2023-07-04' AND r.table_name = 'pod_time_to_result'
    AND r.platform = 'IPU-M2000' AND r.model_printed = 'MCMC TFP' AND gpu.claim_id = 'blog2020-mcmc-gpu-time'
ORDER BY r.result_id
