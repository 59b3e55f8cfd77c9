-- scope: document
-- Flag a figure per transfer, tile, core or operand that, times their number, is not the total of
-- the same work in the same table.
WITH figures AS (
    SELECT
        *,
        regexp_replace(place, ', column .*', '') AS printed_table,
        nullif(regexp_extract(statistic, 'per (transfer|tile|core|operand)$', 1), '') AS part
    FROM rules.microbenchmark_figures
), shares AS (
    SELECT
        *,
        CASE part
            WHEN 'operand' THEN size_in(shape, 'operands_per_tile') * size_in(shape, 'tiles')
            ELSE size_in(shape, part || 's')
        END AS parts
    FROM figures
    WHERE part IS NOT NULL
), compared AS (
    SELECT DISTINCT ON (s.result_id)
        s.*, t.raw AS total, t.unit AS total_unit, t.place AS total_place,
        s.canonical_value * parts / t.canonical_value AS ratio
    FROM shares s
    JOIN figures t
        ON t.work = s.work AND t.printed_table = s.printed_table AND t.part IS NULL
        AND (s.high * parts < t.low OR t.high < s.low * parts)
    ORDER BY t.row_number, t.result_id
)
SELECT
    result_id, 'value' AS column_name, grade_gap(ratio) AS severity,
    format(
        '{} {} × {:.0f} is {} {} {}, which {} prints',
        raw, unit, parts,
        CASE
            -- a ratio within 2 reads better as a difference
            WHEN ratio > 0.5 AND ratio <= 1 THEN format('{:.1f}% below', 100 * (1 - ratio))
            WHEN ratio > 1 AND ratio < 2 THEN format('{:.1f}% above', 100 * (ratio - 1))
            ELSE format_rounded(ratio) || ' times'
        END,
        total, total_unit, total_place
    ) AS message
FROM compared
