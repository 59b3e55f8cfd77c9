-- The rows that may not be compared with a run, by reason: what the user can state first, then the
-- largest groups, and last what nothing could make comparable, rows of MLPerf and of another task.
WITH refused AS (
    SELECT
        p.run, p.obstacle.reason AS reason,
        arg_min(p.obstacle, r.place) AS obstacle,
        count(*) AS rows,
        list(p.result_id ORDER BY r.place)[:3] AS examples
    FROM pairs p
    JOIN theirs r USING (result_id)
    WHERE p.obstacle IS NOT NULL
    GROUP BY ALL
)
SELECT
    run, reason, obstacle.code AS code, obstacle.has_next_step AS has_next_step, rows, examples,
    row_number() OVER (
        PARTITION BY run
        ORDER BY
            NOT has_next_step, code = 'different-tasks', code = 'mlperf-with-other', rows DESC, reason
    ) AS position
FROM refused
