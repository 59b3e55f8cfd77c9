-- Divisions of MLPerf Training 1.0 in which Graphcore has entries.
SELECT
    count(DISTINCT division)::DOUBLE AS value,
    'MLPerf Training 1.0' AS baseline,
    string_agg(DISTINCT division, ', ' ORDER BY division) AS arithmetic,
    list('mlperf_entries:' || round || '/' || path ORDER BY path) AS inputs
FROM mlperf_entries
WHERE round = '1.0' AND submitter = 'Graphcore'
HAVING count(*) > 0
ORDER BY value
