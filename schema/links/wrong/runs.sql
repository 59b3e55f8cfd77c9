-- Local runs of which record or points are missing or belong to another run, and points of a run
-- that are not of its device or not of one origin.
WITH papers AS (  -- the documents of each run
    SELECT
        run_id,
        min(document_id) FILTER (reader = 'sweep-record') AS record,
        min(document_id) FILTER (reader = 'sweep-points') AS points
    FROM read.run_documents
    GROUP BY run_id
),
origins AS (
    SELECT document_id, string_agg(DISTINCT origin, ', ' ORDER BY origin) AS named
    FROM results
    GROUP BY document_id
    HAVING count(DISTINCT origin) > 1
),
points AS (
    SELECT p.*, r.backend AS run_backend, r.device AS run_device
    FROM read.run_points p
    JOIN papers ON papers.points = p.document_id
    JOIN read.runs r ON r.document_id = papers.record
)
SELECT
    coalesce(record, points) AS document_id,
    NULL AS place,
    format(
        'the run {} has no {} document',
        run_id,
        CASE WHEN points IS NULL THEN 'points' ELSE 'record' END
    ) AS message
FROM papers
WHERE record IS NULL OR points IS NULL

UNION ALL
SELECT document_id, '$.run_id', format('is the record of another run, {}', r.run_id)
FROM read.runs r
JOIN papers ON papers.record = r.document_id
WHERE r.run_id <> papers.run_id

UNION ALL
SELECT
    document_id,
    locator,
    format('''{}'' is not the {} of the run, ''{}''', coalesce(own, ''), name, of_run)
FROM points, (VALUES ('backend', backend, run_backend), ('device', device, run_device))
    AS compared(name, own, of_run)
WHERE own IS DISTINCT FROM of_run

UNION ALL
SELECT papers.points, NULL, format('mixes origins: {}', origins.named)
FROM papers
JOIN origins ON origins.document_id = papers.points
