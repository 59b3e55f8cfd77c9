WITH entries AS (
    SELECT
        e.* REPLACE (r.usable AS usable), e.minutes * e.chip_count AS chip_minutes
    FROM mlperf_entries e
    JOIN results r USING (result_id)
    WHERE e.minutes IS NOT NULL AND e.chip_count > 0
)
SELECT
    benchmark, comparable_rounds, division, availability,
    round, submitter, platform, chip, chip_count, framework, minutes, chip_minutes,
    company, minutes_per_sample, global_batch_size,
    first_value(chip_count) OVER series AS base_chip_count, first_value(minutes) OVER series AS base_minutes,
    first_value(chip_minutes) OVER series / chip_minutes AS scaling_efficiency,
    first_value(minutes_per_sample * chip_count) OVER series / (minutes_per_sample * chip_count) AS rate_efficiency,
    first_value(path) OVER series AS base_path,
    energy_j, energy_j / 3600000 AS energy_kwh, energy_j / (60 * chip_minutes) AS chip_power_w,
    mlperf_id, mlperf_id_confidence, path,
    attribution || '; chip minutes are not an MLPerf metric' AS attribution,
    usable
FROM entries
WINDOW series AS (
    PARTITION BY round, benchmark, division, company, chip
    ORDER BY chip_count, minutes, path
    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
)
ORDER BY benchmark, comparable_rounds, division, availability, chip_minutes, round, path
