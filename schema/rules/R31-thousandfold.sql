-- scope: document
-- Flag a figure that is 300 times its neighbours or more, or as small a part of them: a unit
-- mistaken, since unit prefixes differ by 1000.
-- Neighbours are the two nearest sizes in rows that differ in the last size of their shape only. A
-- figure that grows with the size is compared after division by the size, too, and flagged if both
-- ways agree.
WITH points AS (
    SELECT
        *,
        regexp_replace(shape, '(?:^| )\w+=\d+$', '') AS base,
        struct_pack(
            size := try_cast(regexp_extract(shape, '(?:^| )\w+=(\d+)$', 1) AS DOUBLE),
            place := row_number,
            figure := canonical_value
        ) AS here
    FROM rules.microbenchmark_figures
    WHERE here['size'] > 0 AND canonical_value > 0
), surrounded AS (
    SELECT
        *,
        [
            lag(here) OVER sizes, lead(here) OVER sizes,
            lead(here, 2) OVER sizes, lag(here, 2) OVER sizes
        ] AS around
    FROM points
    WINDOW sizes AS (
        PARTITION BY
            document_id, chip, chip_count, operation, base, precision_printed, metric, conditions,
            statistic
        ORDER BY here
    )
), neighbours AS (
    SELECT *, list_sort([point FOR point IN around IF point IS NOT NULL][:2]) AS nearest
    FROM surrounded
), compared AS (
    SELECT
        *,
        [here.figure / near.figure FOR near IN nearest] AS plain,
        [here.figure / near.figure / (here.size / near.size) FOR near IN nearest] AS scaled,
        plain || scaled AS ratios
    FROM neighbours
)
SELECT
    result_id, 'value' AS column_name, 'warn' AS severity,
    format(
        '{} {}; the neighbouring sizes have {} {}',
        raw, unit,
        array_to_string([format_figure(near.figure) FOR near IN nearest], ' and '),
        canonical_unit
    ) AS message
FROM compared
WHERE list_min(ratios) >= 300 OR list_max(ratios) <= 1 / 300.0
