-- Why `$figure` of two rows may not be compared on the basis `$basis`: the rows are the runs 1 and 2,
-- each of which is held against both. One reason a column, and one of the figure: first that of a
-- direction, a flag before others, and the chips last. `$can_divide` says whether the figure can be
-- divided by chips.
WITH pair AS (
    SELECT
        a.batch_size AS batch, b.batch_size AS other_batch,
        a.chip_count AS chips, b.chip_count AS other_chips
    FROM mine a
    JOIN mine b ON a.run = 1 AND b.run = 2
),
broken AS (  -- each direction looks at the flags of one row only
    SELECT
        run, unnest(o.obstacles) AS obstacle, generate_subscripts(o.obstacles, 1) AS place
    FROM obstacles o
    JOIN mine m USING (run)
    WHERE o.result_id <> m.result_id
),
found AS (
    SELECT
        obstacle, obstacle.column_name AS what,
        (place > 1, obstacle.code <> 'flagged', run, place) AS position
    FROM broken
    UNION ALL
    SELECT obstacle, $figure, (TRUE, TRUE, 3, 0)
    FROM shared_figures s
    JOIN mine m ON m.run = 2 AND m.result_id = s.result_id
    WHERE s.run = 1 AND s.figure = $figure
    UNION ALL
    SELECT
        CASE
            WHEN $basis = 'whole-machine' THEN NULL
            WHEN $basis = 'per-chip' AND (chips IS NULL OR other_chips IS NULL) THEN
                refuse('chip_count', 'unknown-chip-count', differ('chip_count', chips, other_chips))
            WHEN chips IS NOT DISTINCT FROM other_chips THEN NULL
            WHEN $basis = 'same' THEN
                refuse('chip_count', 'different-chip-counts',
                    differ('chip_count', chips, other_chips))
            WHEN NOT $can_divide THEN
                refuse('chip_count', 'different-chip-counts', format(
                    '{}, and {} cannot be divided by chips',
                    differ('chip_count', chips, other_chips), $figure
                ))
        END,
        'chip_count', (TRUE, TRUE, 4, 0)
    FROM pair
)
SELECT
    obstacle.code AS code,
    CASE
        -- the rule asks a user for the batch size
        WHEN obstacle.code = 'different-batch-sizes' AND (batch IS NULL) <> (other_batch IS NULL)
            THEN differ('batch size', batch, other_batch)
        ELSE obstacle.reason
    END AS reason
FROM found, pair
WHERE obstacle IS NOT NULL
QUALIFY row_number() OVER (PARTITION BY what ORDER BY position) = 1
ORDER BY position
