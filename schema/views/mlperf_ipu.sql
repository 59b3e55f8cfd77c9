WITH both_ways AS (
    SELECT round, path, other_path, outcome FROM detail.mlperf_pairs
    UNION ALL
    SELECT round, other_path, path, outcome FROM detail.mlperf_pairs
),
entries AS (
    SELECT e.* REPLACE (r.usable AS usable)
    FROM mlperf_entries e
    JOIN results r USING (result_id)
    WHERE e.minutes IS NOT NULL
)
SELECT
    i.round, i.benchmark, i.division, i.submitter AS ipu_submitter, i.platform AS ipu_platform,
    i.chip AS ipu_chip, i.chip_count AS ipu_chip_count, i.framework AS ipu_framework,
    i.minutes AS ipu_minutes, i.minutes_low AS ipu_minutes_low, i.minutes_high AS ipu_minutes_high,
    o.submitter, o.platform, o.chip, o.chip_count, o.minutes, o.minutes_low, o.minutes_high,
    o.minutes / i.minutes AS ratio, o.chip_count / i.chip_count AS chip_count_ratio,
    CASE
        WHEN b.outcome IS DISTINCT FROM 'separable' THEN b.outcome
        WHEN o.minutes > i.minutes THEN 'ipu-faster'
        ELSE 'ipu-slower'
    END AS outcome,
    o.chip_printed ILIKE '%IPU%' AS is_ipu,
    i.mlperf_id, i.mlperf_id_confidence, i.path AS ipu_path, o.path, i.result_id AS ipu_result_id, o.result_id,
    i.attribution || coalesce('; against ' || o.attribution, '') || '; ratios are not MLPerf metrics' AS attribution,
    i.usable AND coalesce(o.usable, true) AS usable
FROM entries i
LEFT JOIN both_ways b ON b.round = i.round AND b.path = i.path
LEFT JOIN entries o ON o.round = b.round AND o.path = b.other_path
WHERE i.chip_printed ILIKE '%IPU%'
ORDER BY i.round, i.benchmark, i.division, i.chip_count, i.path, o.chip_count, o.minutes, o.path
