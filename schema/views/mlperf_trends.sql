WITH rates AS (
    SELECT
        *, row_number() OVER (ORDER BY minutes, path) AS place,  -- entries of equal minutes have one order
        minutes * nullif(accelerators, 0) AS accelerator_minutes,
        CASE WHEN accelerators = 0 THEN nodes END AS nodes_alone,
        samples_to_converge / nullif(minutes / scaling_factor * accelerators, 0) AS samples_per_accelerator_minute
    FROM mlperf_entries
    WHERE minutes IS NOT NULL AND comparable_model IS NOT NULL
)
SELECT
    comparable_model, comparable_rounds, division,
    CASE
        WHEN grouping(accelerators) = 1 THEN 'all-sizes'
        WHEN grouping(accelerator_canonical) = 1 THEN 'same-size'
        ELSE 'same-chip'
    END AS scope,
    accelerators, round, count(*) AS entries, count(DISTINCT submitter) AS submitters,
    min(minutes) AS best_minutes, median(minutes) AS median_minutes, max(accelerators) AS most_accelerators,
    min(accelerator_minutes) AS best_accelerator_minutes, median(accelerator_minutes) AS median_accelerator_minutes,
    max(samples_per_accelerator_minute) AS best_samples_per_accelerator_minute,
    median(samples_per_accelerator_minute) AS median_samples_per_accelerator_minute,
    median(samples_to_converge) AS median_samples,
    arg_min(path, place) AS best_path, arg_min(result_id, place) AS best_result_id,
    arg_min(attribution, place) AS attribution,
    accelerator_canonical, arg_min(accelerator_canonical, place) AS best_accelerator,
    arg_min(framework, place) AS best_framework, arg_min(accelerators, place) AS best_accelerators,
    min(minutes_per_sample) AS best_minutes_per_sample,
    first_value(min(minutes)) OVER series / min(minutes) AS progress,
    first_value(min(minutes_per_sample)) OVER series / min(minutes_per_sample) AS speed_progress,
    nodes_alone AS nodes, bool_or(normalised) AS normalised
FROM rates
GROUP BY GROUPING SETS (
    (comparable_model, comparable_rounds, division, round),
    (comparable_model, comparable_rounds, division, round, accelerators, nodes_alone),
    (comparable_model, comparable_rounds, division, round, accelerators, nodes_alone, accelerator_canonical)
)
HAVING
    (grouping(accelerators) = 1 OR accelerators IS NOT NULL)
    AND (grouping(accelerator_canonical) = 1 OR accelerator_canonical IS NOT NULL)
WINDOW series AS (
    PARTITION BY
        comparable_model, comparable_rounds, division, grouping(accelerators), accelerators, nodes_alone,
        grouping(accelerator_canonical), accelerator_canonical
    ORDER BY string_split(round, '.')::BIGINT[]
)
ORDER BY
    comparable_model, comparable_rounds, division, scope, accelerators, nodes, accelerator_canonical,
    string_split(round, '.')::BIGINT[]
