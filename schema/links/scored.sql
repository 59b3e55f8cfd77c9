-- The entries with a score in its order, and of those that can have an interval the minutes of their
-- counted runs, each log once, with what the runs needed to converge in the first unit that all of them
-- have: a count of zero says nothing. Two runs say nothing of how such runs differ.
--
-- `reference` is what the official reference needs over what the entry needed, 0 where nothing is
-- normalised or none is known. A scaling factor above 1 is that ratio; without one, the reference needs
-- at most as much as the entry.
-- `alike` are the groups of entries whose runs converge alike, the closest first: of one batch size, else
-- of any.
WITH runs AS (
    SELECT
        round,
        path,
        list(minutes ORDER BY file) AS run_minutes,
        CASE
            WHEN min(coalesce(samples, 0)) > 0 THEN list(samples ORDER BY file)
            WHEN min(coalesce(tokens, 0)) > 0 THEN list(tokens ORDER BY file)
            WHEN min(coalesce(epochs, 0)) > 0 THEN list(epochs ORDER BY file)
            ELSE list('nan'::DOUBLE)
        END AS counts,
        CASE
            WHEN count(minutes_per_sample) >= 3
                THEN list(minutes_per_sample ORDER BY file)
                    FILTER (minutes_per_sample IS NOT NULL)
        END AS speeds
    FROM logs
    WHERE is_used
    GROUP BY round, path
    HAVING count(*) >= 3
),
needed AS (
    SELECT
        e.*,
        CASE p.unit
            WHEN 'steps' THEN e.samples_to_converge / e.global_batch_size
            WHEN 'samples' THEN e.samples_to_converge
            WHEN 'tokens' THEN e.tokens_to_converge
            WHEN 'epochs' THEN e.epochs_to_converge
        END AS to_converge
    FROM entries e
    LEFT JOIN reference_points p USING (round, benchmark)
    WHERE e.minutes IS NOT NULL
)
SELECT
    row_number() OVER (ORDER BY e.minutes, e.round, e.path) AS place,
    e.round,
    e.path,
    e.benchmark,
    e.division,
    e.company,
    e.model,
    e.comparable_rounds,
    e.chip_count,
    e.nodes,
    e.global_batch_size,
    name_size(e.chip_count, e.nodes) AS size,
    coalesce(e.same_as, e.result_id, e.path) AS measurement,
    r.run_minutes,
    r.counts,
    r.speeds,
    find_drop(e.benchmark) AS fastest,
    [fastest, fastest - (e.n_runs - e.n_success)] AS dropped,
    CASE
        WHEN e.scaling_factor > 1 THEN e.scaling_factor
        WHEN e.normalised AND e.to_converge > 0 AND e.reference_to_converge IS NOT NULL
            THEN least(1, e.reference_to_converge / e.to_converge)
        ELSE 0
    END AS reference,
    [
        dense_rank() OVER (ORDER BY e.round, e.division, e.benchmark, e.global_batch_size),
        -dense_rank() OVER (ORDER BY e.round, e.division, e.benchmark)
    ] AS alike
FROM needed e
LEFT JOIN runs r USING (round, path)
ORDER BY place
