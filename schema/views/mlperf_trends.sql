WITH rates AS (
    SELECT
        *, minutes * accelerators AS accelerator_minutes,
        samples_to_converge / nullif(minutes / scaling_factor * accelerators, 0) AS samples_per_accelerator_minute
    FROM mlperf_entries
    WHERE minutes IS NOT NULL AND comparable_model IS NOT NULL
)
SELECT
    comparable_model, comparable_rounds, division,
    CASE WHEN grouping(accelerators) = 1 THEN 'all-sizes' ELSE 'same-size' END AS scope,
    accelerators, round, count(*) AS entries, count(DISTINCT submitter) AS submitters,
    min(minutes) AS best_minutes, median(minutes) AS median_minutes, max(accelerators) AS most_accelerators,
    min(accelerator_minutes) AS best_accelerator_minutes, median(accelerator_minutes) AS median_accelerator_minutes,
    max(samples_per_accelerator_minute) AS best_samples_per_accelerator_minute,
    median(samples_per_accelerator_minute) AS median_samples_per_accelerator_minute,
    median(samples_to_converge) AS median_samples,
    arg_min(path, minutes) AS best_path, arg_min(result_id, minutes) AS best_result_id,
    arg_min(attribution, minutes) AS attribution
FROM rates
GROUP BY GROUPING SETS (
    (comparable_model, comparable_rounds, division, round),
    (comparable_model, comparable_rounds, division, round, accelerators)
)
HAVING grouping(accelerators) = 1 OR accelerators IS NOT NULL
ORDER BY comparable_model, comparable_rounds, division, scope, accelerators, string_split(round, '.')::BIGINT[]
