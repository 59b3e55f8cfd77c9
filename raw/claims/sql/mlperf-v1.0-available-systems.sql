-- Graphcore's systems in MLPerf Training 1.0 all of whose entries are of an available class.
SELECT
    count(*)::DOUBLE AS value,
    'MLPerf Training 1.0' AS baseline,
    string_agg(platform || ' ' || classes, ', ' ORDER BY platform) AS arithmetic,
    flatten(list(entries ORDER BY platform)) AS inputs
FROM (
    SELECT
        platform, string_agg(DISTINCT availability, ' and ' ORDER BY availability) AS classes,
        list('mlperf_entries:' || round || '/' || path ORDER BY path) AS entries
    FROM mlperf_entries
    WHERE round = '1.0' AND submitter = 'Graphcore'
    GROUP BY platform
    HAVING bool_and(availability IN ('onprem', 'cloud'))
) AS systems
HAVING count(*) > 0
ORDER BY value
