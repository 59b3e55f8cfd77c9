-- Host processors of the claim's machine, from the official system descriptions of the document's round.
SELECT
    e.nodes * e.host_processors_per_node::DOUBLE AS value,
    e.platform || ', ' || e.benchmark || ', ' || e.division || ', MLPerf v' || e.round AS baseline,
    printf('%d node of %d %s', e.nodes, e.host_processors_per_node, e.host_processor) AS arithmetic,
    ['mlperf_entries:' || e.round || '/' || e.path] AS inputs
FROM claim AS c
JOIN mlperf_entries AS e ON e.platform = c.subject
WHERE e.round = '1.0' AND e.submitter = 'Graphcore'
ORDER BY e.path
