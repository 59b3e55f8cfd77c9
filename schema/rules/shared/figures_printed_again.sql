-- The figures of four digits or more that rows of two to ten set-ups print: all conditions that R53 compares. `set_up` is the
-- place of the set-up's first row with this figure, `rows` how many rows have both, `first_table` and `last_table` their tables
-- in the order of names. More set-ups are left out, since their pairs would grow with the square of the rows. R53 alone reads
-- it; as a table it leaves the memory before the pairs are made.
WITH long_figures AS (
    SELECT
        f.column_name AS figure_name, f.figure, p.place, p.result_id,
        concat_ws(' ', p.document_id, p.table_name) AS printed_table,
        p.task, p.model_printed, p.variant, p.dataset_printed, p.platform, p.sdk_version,
        p.framework, p.precision_printed, p.item, p.batch_size
    FROM rules.printed_figures f
    JOIN rules.published p USING (place)
    WHERE f.digits >= 4
        AND p.result_id NOT IN (SELECT result_id FROM rules.against_config)
), few AS (
    SELECT figure_name, figure
    FROM (
        SELECT DISTINCT
            figure_name, figure, task, model_printed, variant, dataset_printed, platform,
            sdk_version, framework, precision_printed, item, batch_size
        FROM long_figures
    )
    GROUP BY figure_name, figure
    HAVING count(*) BETWEEN 2 AND 10
)
SELECT
    *,
    min(place) OVER same_set_up AS set_up,
    count(*) OVER same_set_up AS rows,
    min(printed_table) OVER same_set_up AS first_table,
    max(printed_table) OVER same_set_up AS last_table
FROM long_figures
SEMI JOIN few USING (figure_name, figure)
WINDOW same_set_up AS (
    PARTITION BY
        figure_name, figure, task, model_printed, variant, dataset_printed, platform,
        sdk_version, framework, precision_printed, item, batch_size
)
