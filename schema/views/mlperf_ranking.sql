WITH listed AS (
    SELECT
        r.*, e.path, e.submitter, e.company, e.same_as, e.nodes AS entry_nodes, e.platform, e.chip,
        e.chip_count AS entry_chip_count, e.availability,
        e.framework, e.model, e.comparable_rounds, e.minutes, e.minutes_low, e.minutes_high,
        e.interval_method, e.result_id, e.attribution,
        e.minutes_per_sample, result.usable,
        first_value(e.path) OVER (
            PARTITION BY r.ranking, coalesce(e.same_as, e.result_id, e.path) ORDER BY e.path
        ) AS first_path,
        e.path <> first_path AS repeats
    FROM detail.rank_resolution r
    JOIN mlperf_entries e
        ON e.round = r.round AND e.benchmark = r.benchmark AND e.division = r.division AND e.minutes IS NOT NULL
        AND (r.chip_count IS NULL OR e.chip_count = r.chip_count)
        AND (r.nodes IS NULL OR e.nodes = r.nodes)
    JOIN results result ON result.result_id = e.result_id
),
known AS (  -- minutes that a document prints for entries whose logs we lack
    SELECT r.ranking, list(e.minutes_published) AS minutes_published
    FROM detail.rank_resolution r
    JOIN mlperf_entries e
        ON e.round = r.round AND e.benchmark = r.benchmark AND e.division = r.division
        AND (r.chip_count IS NULL OR e.chip_count = r.chip_count)
        AND (r.nodes IS NULL OR e.nodes = r.nodes)
    WHERE e.minutes_published IS NOT NULL
    GROUP BY r.ranking
),
ranked AS (  -- a measurement that was entered again has the rank of the first, and is left out of the neighbours
    SELECT
        *,
        coalesce(len(minutes_published), 0) AS published,
        1 + coalesce(len(list_filter(minutes_published, lambda printed: printed < minutes)), 0)
            + count(*) FILTER (NOT repeats) OVER (
                PARTITION BY ranking ORDER BY minutes RANGE UNBOUNDED PRECEDING EXCLUDE GROUP
            ) AS rank,
        CASE WHEN NOT repeats THEN lag(path) OVER by_minutes END AS faster_path,
        CASE WHEN NOT repeats THEN
            chip = lag(chip) OVER by_minutes
            AND entry_chip_count = lag(entry_chip_count) OVER by_minutes
            AND company <> lag(company) OVER by_minutes
        END AS same_machine,
        CASE WHEN minutes_per_sample IS NOT NULL THEN 1 + count(*) FILTER (NOT repeats) OVER (
            PARTITION BY ranking, minutes_per_sample IS NULL
            ORDER BY minutes_per_sample RANGE UNBOUNDED PRECEDING EXCLUDE GROUP
        ) END AS speed_rank,
        CASE WHEN NOT repeats THEN lag(path) OVER (
            PARTITION BY ranking, repeats, minutes_per_sample IS NULL ORDER BY minutes_per_sample, path
        ) END AS faster_path_by_speed
    FROM listed
    LEFT JOIN known USING (ranking)
    WINDOW by_minutes AS (PARTITION BY ranking, repeats ORDER BY minutes, path)
),
both_ways AS (
    SELECT
        round, path, other_path, gap_percent, outcome, p_value, p_value_corrected, wrong_order_probability, speed_p_value,
        false AS other_is_faster
    FROM detail.mlperf_pairs
    UNION ALL
    SELECT
        round, other_path, path, gap_percent, outcome, p_value, p_value_corrected, wrong_order_probability, speed_p_value,
        true
    FROM detail.mlperf_pairs
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
    JOIN both_ways p ON p.round = a.round AND p.path = a.first_path
    JOIN ranked b ON b.ranking = a.ranking AND b.path = p.other_path
    GROUP BY ALL
)
SELECT
    r.ranking, r.round, r.benchmark, r.division, r.scope, r.model, r.comparable_rounds,
    r.rank, 1 + coalesce(o.surely_faster, 0) AS best_rank,
    r.measurements + r.unscored - coalesce(o.surely_slower, 0) AS worst_rank,
    coalesce(o.tied_with, 0) AS tied_with, o.tied_ranks, o.gap_percent, o.outcome,
    o.p_value, o.p_value_corrected, o.wrong_order_probability, r.same_machine,
    r.minutes_per_sample, r.speed_rank, o.speed_p_value,
    r.submitter, r.platform, r.chip, r.entry_chip_count AS chip_count, r.availability, r.framework,
    r.minutes, r.minutes_low, r.minutes_high, r.interval_method, r.entries, r.path, r.result_id, r.attribution,
    r.measurements, r.unscored, r.rank + r.unscored - r.published AS rank_at_most, r.repeats, r.same_as,
    r.company, r.entry_nodes AS nodes, r.usable, r.published
FROM ranked r
LEFT JOIN others o ON o.ranking = r.ranking AND o.path = r.path
ORDER BY r.ranking, r.rank, r.path
