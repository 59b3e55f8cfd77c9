WITH shared AS (
    SELECT round, path, other_path, logs FROM detail.mlperf_shared_logs WHERE other_round = round
    UNION ALL
    SELECT round, other_path, path, logs FROM detail.mlperf_shared_logs WHERE other_round = round
),
scored AS (  -- each measurement once
    SELECT * FROM mlperf_entries
    WHERE minutes IS NOT NULL AND division IS NOT NULL
    QUALIFY row_number() OVER (
        PARTITION BY round, benchmark, division, coalesce(same_as, result_id, path) ORDER BY path
    ) = 1
)
SELECT
    a.round, a.benchmark, a.division,
    a.path, a.submitter, a.platform, a.chip, a.chip_count, a.minutes, a.minutes_low, a.minutes_high,
    b.path AS other_path, b.submitter AS other_submitter, b.platform AS other_platform,
    b.chip AS other_chip, b.chip_count AS other_chip_count, b.minutes AS other_minutes,
    b.minutes_low AS other_minutes_low, b.minutes_high AS other_minutes_high,
    100 * (b.minutes / a.minutes - 1) AS gap_percent,
    coalesce(s.logs, 0) AS shared_logs,
    CASE
        WHEN s.logs > 0 THEN 'shared-logs'
        WHEN t.p_value IS NULL THEN 'untested'
        WHEN t.p_value < 0.05 THEN 'separable'
        ELSE 'tied'
    END AS outcome,
    t.p_value, t.p_value_corrected, t.wrong_order_probability,
    a.minutes_per_sample, b.minutes_per_sample AS other_minutes_per_sample, t.speed_p_value,
    CASE
        WHEN t.speed_p_value IS NULL THEN 'untested'
        WHEN t.speed_p_value >= 0.05 THEN 'tied'
        WHEN a.minutes_per_sample < b.minutes_per_sample THEN 'same-order'
        ELSE 'reversed'
    END AS speed_outcome,
    a.chip_count = b.chip_count AND (a.chip_count > 0 OR a.nodes = b.nodes) AS same_size
FROM scored a
JOIN scored b
    ON b.round = a.round AND b.benchmark = a.benchmark AND b.division = a.division
    AND (b.minutes, b.path) > (a.minutes, a.path)
LEFT JOIN shared s ON s.round = a.round AND s.path = a.path AND s.other_path = b.path
LEFT JOIN detail.mlperf_pair_tests t
    ON t.round = a.round AND t.path = a.path AND t.other_round = b.round AND t.other_path = b.path
