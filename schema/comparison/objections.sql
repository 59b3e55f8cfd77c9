-- Why no row may be compared with a run, for programs that get no answer then: each reason with the
-- number of rows that print a figure of the run. The code that most rows have comes first. A row
-- counts for each of its reasons: a latency of another kind at another batch size is both. Rows of
-- another task count where there are no others.
WITH printing AS (
    SELECT DISTINCT result_id, o.obstacles[1] AS first
    FROM shared_figures
    JOIN obstacles o USING (run, result_id)
),
of_task AS (
    SELECT *, first.column_name IS DISTINCT FROM 'task' AS is_of_task FROM printing
),
relevant AS (
    FROM of_task QUALIFY is_of_task = bool_or(is_of_task) OVER ()
),
reasons AS (
    SELECT result_id, 0 AS position, first.code AS code, first.reason AS reason
    FROM relevant
    UNION ALL
    SELECT result_id, f.position, f.obstacle.code, f.obstacle.reason
    FROM relevant
    JOIN shared_figures f USING (result_id)
),
counted AS (
    SELECT
        code, reason, count(DISTINCT result_id) AS rows, min((r.place, position)) AS place
    FROM reasons
    JOIN theirs r USING (result_id)
    WHERE code IS NOT NULL
    GROUP BY code, reason
)
SELECT code, reason, rows
FROM counted
ORDER BY
    sum(rows) OVER (PARTITION BY code) DESC, min(counted.place) OVER (PARTITION BY code),
    rows DESC, counted.place
