-- Why no row may be compared with a run, for programs that get no answer then: the code that the most
-- rows have that print a figure of the run, with its first reasons and the number of rows of each. A
-- row counts for each of its reasons: a latency of another kind at another batch size is both. Rows
-- of another task count where there are no others.
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
SELECT
    code,
    array_to_string(
        list(format('{} rows: {}', rows, reason) ORDER BY rows DESC, place)[:3], '; '
    ) AS reasons
FROM counted
GROUP BY code
ORDER BY sum(rows) DESC, min(place)
LIMIT 1
