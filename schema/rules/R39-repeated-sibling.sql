-- scope: document
-- Flag a figure that another row of the same network in the table prints, too.
-- Two rows in a row agree in four significant digits or more: by chance, one pair of neighbours in
-- some thousand does. Others agree in six: by chance, no two rows of a table do.
WITH figures AS (
    SELECT
        *,
        lag(place) OVER same AS place_before, lag(spot) OVER same AS spot_before,
        lead(place) OVER same AS place_after, lead(spot) OVER same AS spot_after
    FROM rules.printed_figures
    WHERE column_name IN ('throughput', 'latency_ms') AND digits >= 4
    WINDOW same AS (
        PARTITION BY document_id, table_name, task, model_printed, column_name, figure
        ORDER BY place
    )
), repeated AS (
    SELECT
        *,
        CASE
            WHEN place - place_before = 1 OR digits >= 6 AND place_before IS NOT NULL
                THEN spot_before
            WHEN place_after - place = 1 OR digits >= 6 THEN spot_after
        END AS other
    FROM figures
)
SELECT
    result_id, column_name, 'warn' AS severity,
    format('{} is also printed at {}; one of the two may be a copy', raw_text, other) AS message
FROM repeated
WHERE other IS NOT NULL
