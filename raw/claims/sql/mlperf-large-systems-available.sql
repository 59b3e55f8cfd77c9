-- Graphcore's systems of 128 and more IPUs whose entries are all of an available class.
SELECT
    CAST(count(*) AS DOUBLE) AS value, 'MLPerf Training ' || round AS baseline,
    'available: ' || string_agg(platform, ', ' ORDER BY chip_count) AS arithmetic,
    flatten(list(entries ORDER BY chip_count)) AS inputs
FROM (
    SELECT e.round, e.platform, e.chip_count, list('mlperf_entries:' || e.round || '/' || e.path ORDER BY e.round, e.path) AS entries
    FROM claim AS c
    JOIN mlperf_entries AS e
        ON e.submitter = 'Graphcore' AND e.round = regexp_extract(c.document_id, 'v(\d+\.\d+)', 1)
        AND e.chip_count >= 128
    GROUP BY e.round, e.platform, e.chip_count
    HAVING bool_and(e.availability IN ('onprem', 'cloud'))
)
GROUP BY round
