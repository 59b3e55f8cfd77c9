-- scope: record
-- Flag a condition of a figure of four digits or more that another table prints with another one, such as the page of an
-- earlier date. All other conditions that both state are the same, so one of the two names a condition that is not its own:
-- the one that fewer rows have, else both. What R52 flags is left to it. A figure of more than ten set-ups is one that any may
-- have: all pairs of them would grow with the square of the rows.
WITH figures AS (
    SELECT
        f.column_name AS figure_name, f.raw_text, f.figure, f.spot,
        concat_ws(' ', p.document_id, p.table_name) AS printed_table, p.*
    FROM rules.printed_figures f
    JOIN rules.published p USING (place)
    WHERE f.digits >= 4
), few AS (
    -- First, without their lists, which have to fit into memory at once.
    SELECT figure_name, figure
    FROM (
        SELECT DISTINCT
            figure_name, figure, task, model_printed, variant, dataset_printed, platform,
            sdk_version, framework, precision_printed, item, batch_size
        FROM figures
        WHERE result_id NOT IN (SELECT result_id FROM rules.against_config)
    )
    GROUP BY figure_name, figure
    HAVING count(*) BETWEEN 2 AND 10
), set_ups AS (
    SELECT
        figure_name, figure, task, model_printed, variant, dataset_printed, platform, sdk_version,
        framework, precision_printed, item, batch_size,
        list(result_id) AS ids,
        list_sort(list(DISTINCT printed_table)) AS tables,
        arg_min(raw_text, place) AS raw_text,
        arg_min(format('{} of {}', spot, document_id), place) AS spot
    FROM figures
    JOIN few USING (figure_name, figure)
    WHERE result_id NOT IN (SELECT result_id FROM rules.against_config)
    GROUP BY
        figure_name, figure, task, model_printed, variant, dataset_printed, platform, sdk_version,
        framework, precision_printed, item, batch_size
), pairs AS (
    SELECT
        s.ids, s.raw_text, o.spot,
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
    WHERE (s.tables <> o.tables OR len(s.tables) > 1) AND len(s.ids) <= len(o.ids)
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
), single AS (
    SELECT
        unnest(ids) AS result_id, raw_text, spot, any_value(column_name) AS column_name,
        any_value(own) AS own, any_value(other) AS other
    FROM pairs
    WHERE own <> other
    GROUP BY ids, raw_text, spot
    HAVING count(*) = 1
)
SELECT DISTINCT ON (result_id, column_name)
    result_id, column_name, 'warn' AS severity,
    format(
        '{}, where {} prints {} for the same figure, {}, and no other condition differs',
        own, spot, other, raw_text
    ) AS message
FROM single
ORDER BY spot
