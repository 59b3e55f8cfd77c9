WITH entries AS (
    SELECT *, minutes * accelerators AS accelerator_minutes
    FROM mlperf_entries
    WHERE minutes IS NOT NULL AND accelerators > 0
)
SELECT
    benchmark, comparable_rounds, division, availability,
    round, submitter, system, accelerator, accelerators, framework, minutes, accelerator_minutes,
    company, accelerator_canonical, minutes_per_sample, global_batch_size,
    first_value(accelerators) OVER series AS base_accelerators, first_value(minutes) OVER series AS base_minutes,
    first_value(accelerator_minutes) OVER series / accelerator_minutes AS scaling_efficiency,
    first_value(minutes_per_sample * accelerators) OVER series / (minutes_per_sample * accelerators) AS rate_efficiency,
    first_value(path) OVER series AS base_path,
    energy_j, energy_j / 3600000 AS energy_kwh, energy_j / (60 * accelerator_minutes) AS accelerator_power_w,
    mlperf_id, mlperf_id_confidence, path,
    attribution || '; accelerator minutes are not an MLPerf metric' AS attribution
FROM entries
WINDOW series AS (
    PARTITION BY round, benchmark, division, company, accelerator_canonical
    ORDER BY accelerators, minutes, path
    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
)
ORDER BY benchmark, comparable_rounds, division, availability, accelerator_minutes, round, path
