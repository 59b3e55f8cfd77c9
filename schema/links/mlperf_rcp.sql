-- The table `mlperf_rcp`: each point with whether the reference leaves it out; null for one that was
-- added after the round.
SELECT
    p.*,
    CASE
        WHEN p.at_round
            THEN NOT list_contains(r.points, {'batch': p.global_batch_size, 'mean': p.rcp_mean})
    END AS pruned
FROM read.mlperf_rcp p
LEFT JOIN reference_points r USING (round, benchmark)
