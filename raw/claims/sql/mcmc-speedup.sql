-- The blog's GPU hours over the page's seconds, in both readings of the page: the time of one of the 200 calculations in a
-- sliding window that the chart's notes tell, or that of the whole workload.
SELECT
    gpu.value * 3600 / (n.runs * t.value) AS value,
    printf('latest GPU, the blog''s %g hours; IPU-M2000, %g s read as %s, SDK ', gpu.value, t.value, n.reading)
        || r.sdk_version AS baseline,
    printf(
        '%g h × 3600 / (%g × %g s) = %.2f', gpu.value, n.runs, t.value,
        gpu.value * 3600 / (n.runs * t.value)
    ) AS arithmetic,
    ['results:' || r.result_id, 'claims:' || gpu.claim_id, 'claims:' || w.claim_id] AS inputs,
    n.reading
FROM results AS r
JOIN figures AS t ON t.result_id = r.result_id AND t.metric = 'time_to_result_s'
CROSS JOIN printed AS gpu
CROSS JOIN (
    SELECT claim_id, regexp_extract(dataset_printed, '(\d+) calculations in a sliding window', 1)::DOUBLE AS windows
    FROM printed
    WHERE claim_id = 'sdk14-mcmc-speedup-17'
) AS w
CROSS JOIN (VALUES ('one of 200 calculations', true), ('the whole workload', false)) AS readings (reading, is_part)
CROSS JOIN LATERAL (SELECT readings.reading, if(readings.is_part, w.windows, 1) AS runs) AS n
WHERE r.document_id = 'graphcore-performance-2023-07-04' AND r.table_name = 'pod_time_to_result'
    AND r.platform = 'IPU-M2000' AND r.model_printed = 'MCMC TFP' AND gpu.claim_id = 'blog2020-mcmc-gpu-time'
ORDER BY r.result_id, n.runs DESC
