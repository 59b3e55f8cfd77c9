-- Of each round and benchmark, the unit of the official reference and the points that serve as one:
-- those of the round's own time, without those that the official checker prunes.
SELECT
    round,
    benchmark,
    last(rcp_unit ORDER BY row_number) AS unit,
    prune_points(
        list({'batch': global_batch_size, 'mean': rcp_mean}) FILTER (at_round)
    ) AS points
FROM read.mlperf_rcp
GROUP BY round, benchmark
