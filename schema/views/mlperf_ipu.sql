WITH both_ways AS (
    SELECT
        round, benchmark, division, path, submitter, system, accelerator, accelerators, minutes, minutes_low,
        minutes_high, other_path, other_submitter, other_system, other_accelerator, other_accelerators, other_minutes,
        other_minutes_low, other_minutes_high, outcome
    FROM detail.mlperf_pairs
    UNION ALL
    SELECT
        round, benchmark, division, other_path, other_submitter, other_system, other_accelerator, other_accelerators,
        other_minutes, other_minutes_low, other_minutes_high, path, submitter, system, accelerator, accelerators,
        minutes, minutes_low, minutes_high, outcome
    FROM detail.mlperf_pairs
),
ipus AS (
    SELECT
        e.round, e.path, e.mlperf_id, e.mlperf_id_confidence, e.framework, e.comparable_rounds, e.benchmark, e.division,
        e.submitter, e.system, e.accelerator, e.accelerators, e.minutes, e.minutes_low, e.minutes_high,
        e.interval_method, e.result_id, e.attribution
    FROM mlperf_entries e
    WHERE e.accelerator ILIKE '%IPU%' AND e.minutes IS NOT NULL
)
SELECT
    i.round, i.benchmark, i.division, i.submitter AS ipu_submitter, i.system AS ipu_system,
    i.accelerator AS ipu_accelerator, i.accelerators AS ipu_accelerators, i.framework AS ipu_framework,
    i.minutes AS ipu_minutes, i.minutes_low AS ipu_minutes_low, i.minutes_high AS ipu_minutes_high,
    b.other_submitter AS submitter, b.other_system AS system, b.other_accelerator AS accelerator,
    b.other_accelerators AS accelerators, b.other_minutes AS minutes, b.other_minutes_low AS minutes_low,
    b.other_minutes_high AS minutes_high,
    b.other_minutes / i.minutes AS ratio, b.other_accelerators / i.accelerators AS accelerators_ratio,
    CASE
        WHEN b.outcome IS DISTINCT FROM 'separable' THEN b.outcome
        WHEN b.other_minutes > i.minutes THEN 'ipu-faster'
        ELSE 'ipu-slower'
    END AS outcome,
    b.other_accelerator ILIKE '%IPU%' AS is_ipu,
    i.mlperf_id, i.mlperf_id_confidence, i.path AS ipu_path, b.other_path AS path, i.result_id AS ipu_result_id, o.result_id,
    i.attribution || coalesce('; against ' || o.attribution, '') || '; ratios are not MLPerf metrics' AS attribution
FROM ipus i
LEFT JOIN both_ways b ON b.round = i.round AND b.path = i.path
LEFT JOIN mlperf_entries o ON o.round = b.round AND o.path = b.other_path
ORDER BY i.round, i.benchmark, i.division, i.accelerators, i.path, b.other_accelerators, b.other_minutes, b.other_path
