-- scope: record
-- Flag a condition of a figure of four digits or more that another table prints with another one, such as the page of an
-- earlier date. All other conditions that both state are the same, so one of the two names a condition that is not its own:
-- the one that fewer rows have, else both. What R52 flags is left to it, and a figure of more than ten set-ups
-- is one that any may have.
WITH set_ups AS (
    SELECT m.*, f.raw_text, format('{} of {}', f.spot, f.document_id) AS spot
    FROM rules.figures_printed_again m
    JOIN rules.printed_figures f ON f.place = m.place AND f.column_name = m.figure_name
    WHERE m.place = m.set_up
), pairs AS (
    SELECT
        s.figure_name, s.set_up, s.raw_text, o.spot,
        unnest([
            {column_name: 'task', own: s.task, other: o.task},
            {column_name: 'model_printed', own: s.model_printed, other: o.model_printed},
            {column_name: 'variant', own: s.variant, other: o.variant},
            {column_name: 'dataset_printed', own: s.dataset_printed, other: o.dataset_printed},
            {column_name: 'platform', own: s.platform, other: o.platform},
            {column_name: 'sdk_version', own: s.sdk_version, other: o.sdk_version},
            {column_name: 'framework', own: s.framework, other: o.framework},
            {column_name: 'precision_printed', own: s.precision_printed, other: o.precision_printed},
            {column_name: 'item', own: s.item, other: o.item},
            {column_name: 'batch_size', own: s.batch_size::VARCHAR, other: o.batch_size::VARCHAR}
        ], recursive := TRUE)
    FROM set_ups s
    JOIN set_ups o USING (figure_name, figure)
    WHERE least(s.first_table, o.first_table) <> greatest(s.last_table, o.last_table)
        AND s.rows <= o.rows
        -- few of many pairs differ in one alone, and to list what differs is dear
        AND 1 = (
            coalesce(s.task <> o.task, FALSE)::INTEGER
            + coalesce(s.model_printed <> o.model_printed, FALSE)::INTEGER
            + coalesce(s.variant <> o.variant, FALSE)::INTEGER
            + coalesce(s.dataset_printed <> o.dataset_printed, FALSE)::INTEGER
            + coalesce(s.platform <> o.platform, FALSE)::INTEGER
            + coalesce(s.sdk_version <> o.sdk_version, FALSE)::INTEGER
            + coalesce(s.framework <> o.framework, FALSE)::INTEGER
            + coalesce(s.precision_printed <> o.precision_printed, FALSE)::INTEGER
            + coalesce(s.item <> o.item, FALSE)::INTEGER
            + coalesce(s.batch_size <> o.batch_size, FALSE)::INTEGER
        )
)
SELECT DISTINCT ON (m.result_id, p.column_name)
    m.result_id, p.column_name, 'warn' AS severity,
    format(
        '{}, where {} prints {} for the same figure, {}, and no other condition differs',
        p.own, p.spot, p.other, p.raw_text
    ) AS message
FROM pairs p
JOIN rules.figures_printed_again m ON m.figure_name = p.figure_name AND m.set_up = p.set_up
WHERE p.own <> p.other
ORDER BY p.spot, p.raw_text, p.other
