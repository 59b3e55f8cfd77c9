-- Distinct system names among Graphcore's entries in MLPerf Training 1.0.
SELECT
    count(DISTINCT platform)::DOUBLE AS value,
    'MLPerf Training 1.0' AS baseline,
    string_agg(DISTINCT platform, ', ' ORDER BY platform) AS arithmetic,
    list('mlperf_entries:' || round || '/' || path ORDER BY path) AS inputs
FROM mlperf_entries
WHERE round = '1.0' AND submitter = 'Graphcore'
HAVING count(*) > 0
ORDER BY value
