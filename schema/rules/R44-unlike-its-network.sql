-- scope: record
-- Flag a throughput per chip that is far from all others of the network in the record.
-- Others are the rows of any document with the same task, network and variant: in training those
-- on the same chip, and for each batch those on a Bow or a GC200 (a Bow is a GC200 at a higher
-- clock), or on the same chip. The nearest is three times as much or as little, and nearly (70 %)
-- as far as the others are from each other. Three rows or more are compared.
WITH per_chip AS (
    SELECT
        *, ln(throughput / chip_count) AS figure,
        CASE chip WHEN 'Bow' THEN 'GC200' ELSE chip END AS silicon
    FROM rules.published
    WHERE throughput > 0 AND chip_count IS NOT NULL AND chip IS NOT NULL
), groups AS (
    SELECT * REPLACE (NULL AS batch_size, chip AS silicon), 1 AS choice
    FROM per_chip
    WHERE task = 'training'
    UNION ALL
    SELECT *, 2 FROM per_chip WHERE batch_size IS NOT NULL
), neighbours AS (
    SELECT
        *,
        lag(figure) OVER ranked AS below, lead(figure) OVER ranked AS above,
        min(figure) OVER alike AS least, max(figure) OVER alike AS most
    FROM groups
    WINDOW
        alike AS (PARTITION BY choice, task, model_printed, variant, item, silicon, batch_size),
        ranked AS (
            PARTITION BY choice, task, model_printed, variant, item, silicon, batch_size
            ORDER BY figure
        )
    QUALIFY count(*) OVER alike >= 3
), far AS (
    SELECT DISTINCT ON (result_id) *, figure - coalesce(below, above) AS deviation
    FROM neighbours
    WHERE below IS NULL AND above - figure > greatest(ln(3), 0.7 * (most - above))
        OR above IS NULL AND figure - below > greatest(ln(3), 0.7 * (below - least))
    ORDER BY choice
)
SELECT
    result_id, 'throughput' AS column_name, 'warn' AS severity,
    format(
        '{} items/s on {} × {} are {} times the nearest throughput per chip of {} in the record;'
        || ' read the unit, the batch and the machine again',
        format_figure(throughput), chip_count, chip, format_rounded(exp(deviation)), model_printed
    ) AS message
FROM far
