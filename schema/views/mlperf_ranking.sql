WITH ranked AS (
    SELECT
        r.*, e.path, e.submitter, e.system, e.accelerator, e.accelerators AS entry_accelerators, e.availability,
        e.framework, e.comparable_model, e.comparable_rounds, e.minutes, e.minutes_low, e.minutes_high,
        e.interval_method, e.result_id, e.attribution,
        rank() OVER (PARTITION BY r.ranking ORDER BY e.minutes) AS rank,
        lag(e.path) OVER by_minutes AS faster_path,
        e.accelerator_canonical = lag(e.accelerator_canonical) OVER by_minutes
            AND e.accelerators = lag(e.accelerators) OVER by_minutes
            AND e.company <> lag(e.company) OVER by_minutes AS same_machine,
        e.minutes_per_sample,
        CASE WHEN e.minutes_per_sample IS NOT NULL THEN rank() OVER (
            PARTITION BY r.ranking, e.minutes_per_sample IS NULL ORDER BY e.minutes_per_sample
        ) END AS speed_rank,
        lag(e.path) OVER (
            PARTITION BY r.ranking, e.minutes_per_sample IS NULL ORDER BY e.minutes_per_sample, e.path
        ) AS faster_path_by_speed
    FROM rank_resolution r
    JOIN mlperf_entries e
        ON e.round = r.round AND e.benchmark = r.benchmark AND e.division = r.division AND e.minutes IS NOT NULL
        AND (r.accelerators IS NULL OR e.accelerators = r.accelerators)
    WINDOW by_minutes AS (PARTITION BY r.ranking ORDER BY e.minutes, e.path)
),
both_ways AS (
    SELECT
        round, path, other_path, gap_percent, outcome, p_value, p_value_corrected, wrong_order_probability, speed_p_value,
        false AS other_is_faster
    FROM mlperf_pairs
    UNION ALL
    SELECT
        round, other_path, path, gap_percent, outcome, p_value, p_value_corrected, wrong_order_probability, speed_p_value,
        true
    FROM mlperf_pairs
),
others AS (
    SELECT
        a.ranking, a.path,
        string_agg(DISTINCT b.rank, ', ' ORDER BY b.rank) FILTER (p.outcome IN ('tied', 'shared-logs')) AS tied_ranks,
        count(*) FILTER (p.outcome IN ('tied', 'shared-logs')) AS tied_with,
        count(*) FILTER (p.outcome = 'separable' AND p.other_is_faster) AS surely_faster,
        count(*) FILTER (p.outcome = 'separable' AND NOT p.other_is_faster) AS surely_slower,
        any_value(p.gap_percent) FILTER (p.other_path = a.faster_path) AS gap_percent,
        any_value(p.outcome) FILTER (p.other_path = a.faster_path) AS outcome,
        any_value(p.p_value) FILTER (p.other_path = a.faster_path) AS p_value,
        any_value(p.p_value_corrected) FILTER (p.other_path = a.faster_path) AS p_value_corrected,
        any_value(p.wrong_order_probability) FILTER (p.other_path = a.faster_path) AS wrong_order_probability,
        any_value(p.speed_p_value) FILTER (p.other_path = a.faster_path_by_speed) AS speed_p_value
    FROM ranked a
    JOIN both_ways p ON p.round = a.round AND p.path = a.path
    JOIN ranked b ON b.ranking = a.ranking AND b.path = p.other_path
    GROUP BY ALL
)
SELECT
    r.ranking, r.round, r.benchmark, r.division, r.scope, r.comparable_model, r.comparable_rounds,
    r.rank, 1 + coalesce(o.surely_faster, 0) AS best_rank, r.entries - coalesce(o.surely_slower, 0) AS worst_rank,
    coalesce(o.tied_with, 0) AS tied_with, o.tied_ranks, o.gap_percent, o.outcome,
    o.p_value, o.p_value_corrected, o.wrong_order_probability, r.same_machine,
    r.minutes_per_sample, r.speed_rank, o.speed_p_value,
    r.submitter, r.system, r.accelerator, r.entry_accelerators AS accelerators, r.availability, r.framework,
    r.minutes, r.minutes_low, r.minutes_high, r.interval_method, r.entries, r.path, r.result_id, r.attribution
FROM ranked r
LEFT JOIN others o ON o.ranking = r.ranking AND o.path = r.path
ORDER BY r.ranking, r.rank, r.path
