-- Hours of the MCMC workload: the page's seconds, read as one window, times the sliding windows of the chart's notes;
-- and the time that the blog's own GPU hours and multiple give.
SELECT value, baseline, arithmetic
FROM (
    SELECT
        1 AS place, w.windows * r.time_to_result_s / 3600 AS value,
        printf('IPU-M2000 at %g windows, SDK ', w.windows) || r.sdk_version AS baseline,
        printf(
            '%g × %g s / 3600 = %.2f h', w.windows, r.time_to_result_s, w.windows * r.time_to_result_s / 3600
        ) AS arithmetic
    FROM results AS r
    CROSS JOIN (
        SELECT regexp_extract(dataset, '(\d+) sliding windows', 1)::DOUBLE AS windows
        FROM printed
        WHERE claim_id = 'sdk14-mcmc-speedup-17'
    ) AS w
    WHERE r.document_id = 'graphcore-performance-2023-07-04' AND r.table_name = 'pod_time_to_result'
        AND r.platform = 'IPU-M2000' AND r.model = 'MCMC TFP'
    UNION ALL
    SELECT
        2, gpu.value / multiple.value,
        printf('the document''s own %g hours and %gx', gpu.value, multiple.value),
        printf('%g h / %g = %.2f h', gpu.value, multiple.value, gpu.value / multiple.value)
    FROM printed AS gpu
    CROSS JOIN printed AS multiple
    WHERE gpu.claim_id = 'blog2020-mcmc-gpu-time' AND multiple.claim_id = 'blog2020-mcmc-speedup'
) AS told
ORDER BY place, value
