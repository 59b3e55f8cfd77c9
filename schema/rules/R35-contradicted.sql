-- scope: record
-- Flag each figure that an entry of `contradictions` is about (table `contradicted`), with what it says. The severity is what
-- the entry does to the figure: error where it cannot be what its column says, warn where it is one of two figures that
-- cannot both be, info where the figure holds and a reader must know of the other.
WITH entries AS (
    SELECT
        result_id, column_name,
        list_position(['info', 'warn', 'error'], severity) AS level,
        format('{}: {}', contradiction_id, what) AS entry,
        c.document_id, CAST(regexp_extract(c.locator, '\d+') AS INTEGER) AS line
    FROM detail.contradicted c
    JOIN contradictions USING (contradiction_id)
    WHERE result_id IN (
        SELECT result_id FROM results WHERE origin IN ('published', 'official')
        UNION ALL
        SELECT microbenchmark_id FROM microbenchmarks
    )
)
SELECT
    result_id, column_name, ['info', 'warn', 'error'][max(level)] AS severity,
    string_agg(entry, '; ' ORDER BY document_id, line) AS message
FROM entries
GROUP BY result_id, column_name
