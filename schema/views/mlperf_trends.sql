WITH rates AS (
    SELECT
        *, row_number() OVER (ORDER BY minutes, path) AS place,  -- entries of equal minutes have one order
        minutes * nullif(chip_count, 0) AS chip_minutes,
        CASE WHEN chip_count = 0 THEN nodes END AS nodes_alone,
        samples_to_converge / nullif(minutes / scaling_factor * chip_count, 0) AS samples_per_chip_minute
    FROM mlperf_entries
    WHERE minutes IS NOT NULL AND model IS NOT NULL
)
SELECT
    model, any_value(benchmark) AS benchmark, comparable_rounds, division,
    CASE
        WHEN grouping(chip_count) = 1 THEN 'all-sizes'
        WHEN grouping(chip) = 1 THEN 'same-size'
        ELSE 'same-chip'
    END AS scope,
    chip_count, round, count(*) AS entries, count(DISTINCT submitter) AS submitters,
    min(minutes) AS best_minutes, median(minutes) AS median_minutes, max(chip_count) AS max_chip_count,
    min(chip_minutes) AS best_chip_minutes, median(chip_minutes) AS median_chip_minutes,
    max(samples_per_chip_minute) AS best_samples_per_chip_minute,
    median(samples_per_chip_minute) AS median_samples_per_chip_minute,
    median(samples_to_converge) AS median_samples,
    arg_min(path, place) AS best_path, arg_min(result_id, place) AS best_result_id,
    arg_min(attribution, place) AS attribution,
    chip, arg_min(chip, place) AS best_chip,
    arg_min(framework, place) AS best_framework, arg_min(chip_count, place) AS best_chip_count,
    min(minutes_per_sample) AS best_minutes_per_sample,
    first_value(min(minutes)) OVER series / min(minutes) AS progress,
    first_value(min(minutes_per_sample)) OVER series / min(minutes_per_sample) AS speed_progress,
    nodes_alone AS nodes, bool_or(normalised) AS normalised
FROM rates
GROUP BY GROUPING SETS (
    (model, comparable_rounds, division, round),
    (model, comparable_rounds, division, round, chip_count, nodes_alone),
    (model, comparable_rounds, division, round, chip_count, nodes_alone, chip)
)
HAVING
    (grouping(chip_count) = 1 OR chip_count IS NOT NULL)
    AND (grouping(chip) = 1 OR chip IS NOT NULL)
WINDOW series AS (
    PARTITION BY
        model, comparable_rounds, division, grouping(chip_count), chip_count, nodes_alone,
        grouping(chip), chip
    ORDER BY string_split(round, '.')::BIGINT[]
)
ORDER BY
    model, comparable_rounds, division, scope, chip_count, nodes, chip,
    string_split(round, '.')::BIGINT[]
