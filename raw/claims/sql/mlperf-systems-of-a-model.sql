-- Graphcore's systems with entries on the claim's model in the round of its document, in both divisions.
SELECT
    CAST(count(*) AS DOUBLE) AS value, 'MLPerf Training ' || round AS baseline,
    'in both divisions: ' || string_agg(platform, ', ' ORDER BY chip_count) AS arithmetic,
    flatten(list(entries ORDER BY chip_count)) AS inputs
FROM (
    SELECT e.round, e.platform, e.chip_count, list('mlperf_entries:' || e.round || '/' || e.path ORDER BY e.round, e.path) AS entries
    FROM claim AS c
    JOIN mlperf_entries AS e
        ON e.submitter = 'Graphcore' AND e.round = regexp_extract(c.document_id, 'v(\d+\.\d+)', 1)
    JOIN results AS r ON r.result_id = e.result_id AND r.model_printed = c.model_printed
    GROUP BY e.round, e.platform, e.chip_count
    HAVING count(DISTINCT e.division) = 2
)
GROUP BY round
