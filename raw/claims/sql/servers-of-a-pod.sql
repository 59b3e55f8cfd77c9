-- Host processors of the claim's machine and benchmark over those of an IPU-POD16, which has one server. The official
-- descriptions count every machine as one node.
SELECT
    e.nodes * e.host_processors_per_node / (one.nodes * one.host_processors_per_node) AS value,
    e.platform || ', ' || e.benchmark || ', ' || e.division || ', MLPerf v' || e.round AS baseline,
    printf(
        '%d / %d processors = %g', e.nodes * e.host_processors_per_node, one.nodes * one.host_processors_per_node,
        e.nodes * e.host_processors_per_node / (one.nodes * one.host_processors_per_node)
    ) AS arithmetic,
    ['mlperf_entries:' || e.round || '/' || e.path, 'mlperf_entries:' || one.round || '/' || one.path] AS inputs
FROM claim AS c
JOIN mlperf_entries AS e ON e.platform = c.subject
    AND e.benchmark = CASE WHEN c.model_printed = 'BERT' THEN 'bert' ELSE 'resnet' END
JOIN mlperf_entries AS one ON one.round = e.round AND one.benchmark = e.benchmark AND one.division = e.division
    AND one.platform = 'IPU-POD16'
WHERE e.round = '1.0' AND e.submitter = 'Graphcore' AND one.submitter = 'Graphcore'
ORDER BY e.path
