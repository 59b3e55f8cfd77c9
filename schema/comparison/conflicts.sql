-- The columns in which rows of the record may not be compared with each other, in the order of the
-- rules: each row against those of `mine`, which have every value that matters among them. Batch
-- sizes, runs and flags are no matter of a ranking. `figures` are those whose rules apply.
WITH broken AS (
    SELECT unnest(by_rule) AS obstacle, generate_subscripts(by_rule, 1) AS rule
    FROM obstacles
    UNION ALL
    SELECT obstacle, 100 + position
    FROM shared_figures
    WHERE list_contains($figures, figure)
)
SELECT obstacle.column_name AS column_name, any_value(obstacle.code) AS code
FROM broken
WHERE obstacle IS NOT NULL
    AND obstacle.column_name NOT IN ('batch_size', 'run_id', 'errors', 'suspect')
GROUP BY column_name
ORDER BY min(rule)
