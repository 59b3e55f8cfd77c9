-- Graphcore's systems with entries on the claim's model in the round of its document, in both divisions.
SELECT
    CAST(count(*) AS DOUBLE) AS value, 'MLPerf Training ' || round AS baseline,
    'in both divisions: ' || string_agg(system, ', ' ORDER BY accelerators) AS arithmetic,
    flatten(list(entries ORDER BY accelerators)) AS inputs
FROM (
    SELECT e.round, e.system, e.accelerators, list('mlperf_entries:' || e.round || '/' || e.path ORDER BY e.round, e.path) AS entries
    FROM claim AS c
    JOIN mlperf_entries AS e
        ON e.submitter = 'Graphcore' AND e.round = regexp_extract(c.document_id, 'v(\d+\.\d+)', 1)
    JOIN results AS r ON r.result_id = e.result_id AND r.model = c.model
    GROUP BY e.round, e.system, e.accelerators
    HAVING count(DISTINCT e.division) = 2
)
GROUP BY round
