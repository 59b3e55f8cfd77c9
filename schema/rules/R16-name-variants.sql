-- scope: record
-- Flag a model, platform or framework whose printed name is one of several and not the canonical
-- one: once per printed name, at its first row.
-- A name that includes the variant, such as `BERT Large SL128`, is not a spelling of the model.
WITH printed AS (
    SELECT place, column_name, raw_text
    FROM cells
    JOIN rules.published USING (result_id, document_id)
    WHERE column_name IN ('model_printed', 'platform', 'framework') AND raw_text <> ''
        AND ends_with(raw_text, variant) IS NOT TRUE
    QUALIFY cell_number = min(cell_number) OVER (PARTITION BY place, column_name)
), named AS (
    SELECT
        result_id, place, column_name, raw_text,
        CASE column_name
            WHEN 'model_printed' THEN model_printed
            WHEN 'platform' THEN platform
            ELSE framework
        END AS canonical
    FROM printed
    JOIN rules.published USING (place)
), spellings AS (
    SELECT
        column_name, canonical, raw_text,
        arg_min(result_id, place) AS result_id,
        count(*) AS rows
    FROM named
    WHERE canonical IS NOT NULL
    GROUP BY column_name, canonical, raw_text
), names AS (
    SELECT *, list(raw_text ORDER BY raw_text) OVER (PARTITION BY column_name, canonical) AS others
    FROM spellings
)
SELECT
    result_id, column_name, 'info' AS severity,
    format(
        '{} ({} row{}) is one of several printed names of {}: {}',
        raw_text, rows, if(rows > 1, 's', ''), canonical,
        array_to_string(others, ', ')
    ) AS message,
    canonical AS suggested
FROM names
WHERE len(others) > 1 AND raw_text <> canonical
