-- The table `rank_resolution`: of each ranking, over all sizes and of one size, how many neighbours in the
-- order of scores the runs separate, and groups of neighbours that they do not.
--
-- Two are tied that share a log or have a p of at least 0.05. The corrected count holds p against the
-- number of tested neighbours, by Benjamini and Hochberg.
-- A group reaches from one entry to the last before the first that is not tied with all in it; it counts
-- where no neighbour extends it.
WITH listed AS (
    SELECT
        concat_ws('/', e.round, e.benchmark, e.division, scope, own_size) AS ranking,
        e.round,
        e.benchmark,
        e.division,
        scope,
        if(own_size IS NULL, NULL, e.chip_count) AS chip_count,
        if(own_size IS NOT NULL AND e.chip_count = 0, e.nodes, NULL) AS nodes,
        e.minutes,
        r.place
    FROM entries e
    LEFT JOIN ranked r USING (round, path),
    (VALUES ('all-sizes', NULL), ('same-size', name_size(e.chip_count, e.nodes)))
        AS sizes (scope, own_size)
    WHERE (e.minutes IS NOT NULL OR e.logs_missing > 0)
        AND (scope = 'all-sizes' OR own_size IS NOT NULL)
),
rankings AS (
    SELECT
        ranking,
        round,
        benchmark,
        division,
        scope,
        any_value(chip_count) AS chip_count,
        any_value(nodes) AS nodes,
        count(minutes) AS entries,
        count(place) AS measurements,
        count(*) FILTER (minutes IS NULL) AS unscored
    FROM listed
    GROUP BY ranking, round, benchmark, division, scope
    HAVING measurements > 0
),
ordered AS (
    SELECT ranking, place, row_number() OVER (PARTITION BY ranking ORDER BY place) AS rank
    FROM listed
    WHERE place IS NOT NULL
),
compared AS (
    SELECT
        ranking,
        a.rank,
        b.rank AS other_rank,
        p.shares_logs,
        t.p_value,
        p.shares_logs OR coalesce(t.p_value >= 0.05, FALSE) AS is_tied
    FROM ordered a
    JOIN ordered b USING (ranking)
    JOIN pairs p ON p.first = a.place AND p.second = b.place
    LEFT JOIN detail.mlperf_pair_tests t USING (first, second)
),
neighbours AS (
    SELECT
        *,
        p_value * count(p_value) OVER (PARTITION BY ranking)
            / count(p_value) OVER (PARTITION BY ranking ORDER BY p_value) AS share
    FROM compared
    WHERE other_rank = rank + 1
),
corrected AS (
    SELECT *, min(share) OVER (PARTITION BY ranking ORDER BY p_value DESC) AS p_corrected
    FROM neighbours
),
resolved AS (
    SELECT
        ranking,
        count(*) AS neighbouring_pairs,
        count(*) FILTER (shares_logs) AS shared_log_pairs,
        count(*) FILTER (NOT shares_logs AND p_value IS NULL) AS untested_pairs,
        count(*) FILTER (p_value < 0.05) AS separable_pairs,
        count(*) FILTER (p_value IS NOT NULL AND p_corrected < 0.05) AS separable_pairs_corrected
    FROM corrected
    GROUP BY ranking
),
reaches AS (
    SELECT
        ranking,
        o.rank,
        coalesce(
            min(min(c.other_rank) FILTER (NOT c.is_tied))
                OVER (PARTITION BY ranking ORDER BY o.rank DESC),
            measurements + 1
        ) - 1 AS last_rank
    FROM ordered o
    JOIN rankings USING (ranking)
    LEFT JOIN compared c USING (ranking, rank)
    GROUP BY ranking, o.rank, measurements
),
groups AS (
    SELECT ranking, last_rank - rank + 1 AS members
    FROM reaches
    QUALIFY last_rank > rank
        AND last_rank > lag(last_rank, 1, 0) OVER (PARTITION BY ranking ORDER BY rank)
),
tied AS (
    SELECT ranking, count(*) AS tied_groups, max(members) AS largest_tied_group
    FROM groups
    GROUP BY ranking
)
SELECT n.*, coalesce(COLUMNS(r.* EXCLUDE (ranking)), 0), coalesce(COLUMNS(t.* EXCLUDE (ranking)), 0)
FROM rankings n
LEFT JOIN resolved r USING (ranking)
LEFT JOIN tied t USING (ranking)
