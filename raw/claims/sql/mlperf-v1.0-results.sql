-- Graphcore's entries in MLPerf Training 1.0 in the official repository. The ids that the document lists are not needed to
-- count them.
SELECT
    count(*)::DOUBLE AS value,
    'MLPerf Training 1.0, official repository' AS baseline,
    string_agg(division || ' ' || benchmark || ' on ' || platform, ', ' ORDER BY path) AS arithmetic,
    list('mlperf_entries:' || round || '/' || path ORDER BY round, path) AS inputs
FROM mlperf_entries
WHERE round = '1.0' AND submitter = 'Graphcore'
HAVING count(*) > 0
