-- Each figure that entries of `contradictions` are about (table `contradicted`): what they say, `entries`, and the highest of
-- their severities, `level` 1 to 3.
WITH rows_in_order AS (
    SELECT result_id, document_id, table_name, row_number
    FROM results
    WHERE origin IN ('published', 'official')
    UNION ALL
    SELECT microbenchmark_id, document_id, place, row_number FROM microbenchmarks
), entries AS (
    SELECT
        r.*, column_name, contradiction_id,
        list_position(['info', 'warn', 'error'], severity) AS level,
        format('{}: {}', contradiction_id, what) AS entry,
        c.document_id AS ledger, CAST(regexp_extract(c.locator, '\d+') AS INTEGER) AS line
    FROM detail.contradicted c
    JOIN contradictions USING (contradiction_id)
    JOIN rows_in_order r USING (result_id)
)
SELECT
    result_id, column_name, max(level) AS level,
    list(contradiction_id) AS ids,
    string_agg(entry, '; ' ORDER BY ledger, line) AS entries,
    row_number() OVER (
        ORDER BY document_id, table_name, row_number, result_id, column_name
    ) AS place
FROM entries
GROUP BY document_id, table_name, row_number, result_id, column_name
