-- Pairs of entries whose order is of interest, the lower score first: any two of one ranking, and two of
-- one company and size in successive rounds that are comparable.
--
-- Two are tested whose runs have intervals and no log in common, byte for byte. Their speed is where they
-- are of one size and each has three runs with one.
WITH shared AS (
    SELECT DISTINCT a.round, a.path, b.round AS other_round, b.path AS other_path
    FROM logs a
    JOIN logs b USING (sha256)
    WHERE (a.round, a.path) <> (b.round, b.path)
),
steps AS (
    SELECT
        *,
        dense_rank() OVER (
            PARTITION BY company, benchmark, division, size, model, comparable_rounds
            ORDER BY order_round(round)
        ) AS step
    FROM scored
    WHERE run_minutes IS NOT NULL
),
of_interest AS (
    SELECT family, a.place AS first, b.place AS second
    FROM ranked a
    JOIN ranked b USING (family)
    WHERE a.place < b.place
    UNION ALL
    SELECT NULL, a.place, b.place
    FROM steps a
    JOIN steps b USING (company, benchmark, division, size, model, comparable_rounds)
    WHERE a.place < b.place
        AND abs(a.step - b.step) = 1
        AND a.measurement <> b.measurement
)
SELECT
    p.*,
    a.round,
    a.path,
    b.round AS other_round,
    b.path AS other_path,
    s.path IS NOT NULL AS shares_logs,
    s.path IS NULL AND a.run_minutes IS NOT NULL AND b.run_minutes IS NOT NULL AS is_tested,
    coalesce(a.global_batch_size = b.global_batch_size, FALSE) AS one_batch,
    coalesce(a.size = b.size, FALSE) AND a.speeds IS NOT NULL AND b.speeds IS NOT NULL AS has_speeds
FROM of_interest p
JOIN scored a ON a.place = p.first
JOIN scored b ON b.place = p.second
LEFT JOIN shared s
    ON s.round = a.round
    AND s.path = a.path
    AND s.other_round = b.round
    AND s.other_path = b.path
