-- The rules that keep two rows of a ranking apart, in the order of the rules. Batch sizes, runs and
-- flags are no matter of a ranking. `figures` are those whose rules apply.
WITH broken AS (
    SELECT run, result_id, unnest(by_rule) AS obstacle, generate_subscripts(by_rule, 1) AS rule
    FROM obstacles
    UNION ALL
    SELECT run, result_id, obstacle, 100 + position
    FROM shared_figures
    WHERE list_contains($figures, figure)
)
SELECT
    m.result_id AS first,
    b.result_id AS second,
    obstacle.column_name AS column,
    obstacle.code AS code
FROM broken b
JOIN mine m USING (run)
WHERE obstacle IS NOT NULL
    AND obstacle.column_name NOT IN ('batch_size', 'run_id', 'errors', 'suspect')
ORDER BY rule
