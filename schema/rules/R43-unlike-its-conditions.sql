-- scope: document
-- Flag the one row of its printed conditions with another machine, SDK, framework, precision,
-- network or batch.
-- Four rows or more of the table have these conditions, and all of them agree with each other.
WITH printed AS (
    UNPIVOT (SELECT * REPLACE (batch_size::VARCHAR AS batch_size) FROM rules.published)
    ON platform, sdk_version, framework, precision_printed, model_printed, batch_size
    INTO NAME column_name VALUE value
), counts AS (
    SELECT
        document_id, table_name, conditions, column_name, value,
        any_value(result_id) AS result_id, count(*) AS rows
    FROM printed
    WHERE conditions IS NOT NULL
    GROUP BY document_id, table_name, conditions, column_name, value
)
SELECT
    arg_min(result_id, rows) AS result_id, column_name, 'warn' AS severity,
    format(
        '{}, where the {} other rows with the same conditions have {}; read the cell again',
        arg_min(value, rows), max(rows), arg_max(value, rows)
    ) AS message
FROM counts
GROUP BY document_id, table_name, conditions, column_name
HAVING count(*) = 2 AND min(rows) = 1 AND max(rows) >= 4
