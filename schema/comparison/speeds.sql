-- How fast each chip of a run is, seen from the nearest row of each party, where sources give the
-- peaks of both. What is too fast is held against the peak instead (`checks`). Conventions: a
-- figure five times below the slower one of the two machines is too slow, a latency four times
-- further, which may time one batch or several in flight.
WITH margins AS (
    SELECT
        run, match, figure, wrong_precision, faster, if(is_rate, 1, 4) AS margin,
        if(is_rate, ratio, 1 / ratio) / chips AS speed,
        factor * if(is_rate, 1 / sqrt(faster), sqrt(faster)) AS factor
    FROM ratios
    WHERE is_first AND figure IN ('throughput', 'latency_ms') AND task = 'inference'
)
SELECT
    run, match, figure, wrong_precision, speed, least(1.0, faster) / 5.0 / margin AS slowest,
    3.0 * margin AS near, factor
FROM margins
WHERE speed IS NOT NULL AND faster IS NOT NULL
