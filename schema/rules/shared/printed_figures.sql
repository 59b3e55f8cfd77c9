-- The figures of published rows that are compared digit by digit: `figure` without thousands marks,
-- and `digits`, its significant ones. These begin with the first digit that is not zero; zeros at
-- the end of a whole number do not count. `spot` names the row.
WITH compared AS (
    SELECT
        place, column_name,
        arg_min({'raw_text': raw_text, 'value': value}, cell_number) AS cell
    FROM cells
    JOIN rules.published USING (result_id, document_id)
    WHERE column_name IN ('throughput', 'latency_ms', 'time_to_train_s', 'time_to_result_s')
    GROUP BY place, column_name
), shown_digits AS (
    SELECT
        place, column_name, cell.raw_text, cell.value,
        ltrim(regexp_replace(cell.raw_text, '\D', '', 'g'), '0') AS shown
    FROM compared
)
SELECT
    p.result_id, p.document_id, p.table_name, p.place, p.task, p.model_printed,
    f.column_name, f.raw_text, f.value,
    replace(f.raw_text, ',', '') AS figure,
    length(CASE WHEN contains(f.raw_text, '.') THEN shown ELSE rtrim(shown, '0') END) AS digits,
    format('{} row {} ({}, {})', p.table_name, p.row_number, p.model_printed, p.platform) AS spot
FROM shown_digits f
JOIN rules.published p USING (place)
