-- The rows of the hand-in with the columns that a comparison reads: its own tables stand in for
-- those of the record. They are submitted, measured rows, though they were read as those of a
-- published document, which quality rules look at. What the rules say of them is in `raised`.
WITH results AS (FROM own_results), figures AS (FROM own_figures)
SELECT
    row_number() OVER (ORDER BY row_number) AS run,
    * REPLACE (
        'measured' AS origin, 'submitted' AS relationship, FALSE AS usable, 0 AS errors,
        0 AS warnings, NULL AS suspect, NULL AS doubt
    )
FROM ({candidates})
