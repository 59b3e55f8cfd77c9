-- Local runs of which record or points are missing or belong to another run, and points of a run that are
-- not of its backend, its device or one origin.
WITH papers AS (  -- the documents of each run
    SELECT
        regexp_extract(document_id, '^sweep-(.+?)(-points)?$', 1) AS run_id,
        min(document_id) FILTER (NOT ends_with(document_id, '-points')) AS record,
        min(document_id) FILTER (ends_with(document_id, '-points')) AS points
    FROM documents
    WHERE kind = 'run'
    GROUP BY run_id
)
SELECT
    coalesce(record, points) AS document_id,
    NULL AS place,
    format(
        'the run {} has no {} document', run_id, if(points IS NULL, 'points', 'record')
    ) AS message
FROM papers
WHERE record IS NULL OR points IS NULL

UNION ALL
SELECT record, '$.run_id', format('is the record of another run, {}', r.run_id)
FROM papers
JOIN read.runs r ON r.document_id = record
WHERE r.run_id <> papers.run_id

UNION ALL
SELECT
    points,
    p.locator,
    format('''{}'' is not the {} of the run, ''{}''', coalesce(own, ''), name, of_run)
FROM papers
JOIN read.runs r ON r.document_id = record
JOIN read.run_points p ON p.document_id = points,
(VALUES ('backend', p.backend, r.backend), ('device', p.device, r.device))
    AS compared (name, own, of_run)
WHERE own IS DISTINCT FROM of_run

UNION ALL
SELECT
    document_id,
    NULL,
    format('mixes origins: {}', string_agg(DISTINCT origin, ', ' ORDER BY origin))
FROM results
WHERE run_id IS NOT NULL
GROUP BY document_id
HAVING count(DISTINCT origin) > 1
