-- The figures of published rows that are compared digit by digit: `figure` without thousands marks,
-- and `digits`, its significant ones. These begin with the first digit that is not zero; zeros at
-- the end of a whole number do not count. `spot` names the row.
WITH compared AS (
    SELECT DISTINCT ON (place, column_name)
        *, ltrim(regexp_replace(raw_text, '\D', '', 'g'), '0') AS shown
    FROM rules.printed_cells
    WHERE column_name IN ('throughput', 'latency_ms', 'time_to_train_s', 'time_to_result_s')
    ORDER BY cell_number
)
SELECT
    * EXCLUDE (shown),
    replace(raw_text, ',', '') AS figure,
    format('{} row {} ({}, {})', table_name, row_number, model_printed, platform) AS spot,
    length(CASE WHEN contains(raw_text, '.') THEN shown ELSE rtrim(shown, '0') END) AS digits
FROM compared
