-- Graphcore's entries in MLPerf Training 1.0 that bear one of the ids which the claim's figure lists.
SELECT
    count(*)::DOUBLE AS value,
    'MLPerf Training 1.0' AS baseline,
    string_agg(e.mlperf_id || ' (' || e.mlperf_id_confidence || ')', ', ' ORDER BY e.mlperf_id) AS arithmetic,
    list('mlperf_entries:' || e.round || '/' || e.path ORDER BY e.round, e.path) AS inputs
FROM claim AS c
JOIN mlperf_entries AS e ON list_contains(string_split(c.figure, ', '), e.mlperf_id)
WHERE e.round = '1.0' AND e.submitter = 'Graphcore'
HAVING count(*) > 0
ORDER BY value
