-- Nodes that the official system descriptions count for Graphcore's IPU-POD64 entries in MLPerf Training 1.0.
SELECT
    nodes::DOUBLE AS value,
    platform || ', ' || benchmark || ', ' || division AS baseline,
    printf('%d node', nodes) AS arithmetic,
    ['mlperf_entries:' || round || '/' || path] AS inputs
FROM mlperf_entries
WHERE round = '1.0' AND submitter = 'Graphcore' AND platform = 'IPU-POD64'
ORDER BY benchmark, division, path
