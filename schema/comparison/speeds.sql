-- How fast each chip of a run is, seen from the nearest row of each party, where sources give the
-- peaks of both: `faster` is what the peaks lead to expect. What is too fast is held against the
-- peak instead (`checks`). The thresholds are conventions.
WITH peaks AS (
    SELECT
        x.run, x.match, x.figure, m.precision AS our_precision, r.precision AS their_precision,
        x.figure = 'throughput' AS is_rate,
        m.platform = r.platform AND m.batch_size IS NOT DISTINCT FROM r.batch_size AS is_same,
        m.peak / r.peak AS faster,
        if(is_rate, x.ratio, 1 / x.ratio) * r.chip_count / m.chip_count AS speed,
        if(is_rate, 1, 4) AS margin  -- a latency may time one batch or several in flight
    FROM ratios x
    JOIN ours m USING (run)
    JOIN nearest n ON n.run = x.run AND n.position = x.match
    JOIN theirs r ON r.result_id = n.result_id
    WHERE x.is_first AND x.figure IN ('throughput', 'latency_ms') AND m.task = 'inference'
)
SELECT
    run, match, figure, speed, 3.0 * margin AS near,
    if(is_rate, sqrt(faster), 1 / sqrt(faster)) AS expected,
    least(1.0, faster) / 5.0 / margin AS slowest,  -- five times below the slower one of the two
    -- nearly the same figure at a precision of a third of the peak
    if(is_same AND is_rate AND faster <= 0.3 AND speed > 0.8, format(
        'the peak at {} is {} of that at {}; is it a figure at {} called {}? State precision',
        our_precision, format_share(faster, 0), their_precision, their_precision, our_precision
    ), NULL) AS wrong_precision
FROM peaks
WHERE speed IS NOT NULL AND faster IS NOT NULL
