-- The claim's system against NVIDIA's own entry on eight A100 of one node, closed division: as a ratio of minutes for a
-- claim in x, and in both readings of a percentage for one in %. within_spread: the runs cannot separate the two.
WITH pairs AS (
    SELECT
        ['mlperf_entries:' || i.round || '/' || i.path, 'mlperf_entries:' || g.round || '/' || g.path] AS inputs,
        c.unit, g.minutes / i.minutes AS ratio, i.minutes AS ipu, g.minutes AS gpu,
        i.platform_printed || ' against ' || g.platform_printed || ', closed division, MLPerf Training ' || i.round AS compared,
        t.p_value >= 0.05 AS tied
    FROM claim AS c
    JOIN mlperf_entries AS i ON i.submitter = 'Graphcore' AND i.division = 'closed' AND i.chip_count = 16
    JOIN results AS r ON r.result_id = i.result_id AND r.model_printed = c.model_printed
    JOIN mlperf_entries AS g
        ON g.submitter = 'NVIDIA' AND g.division = 'closed' AND g.chip_count = 8 AND g.nodes = 1
        AND g.round = i.round AND g.benchmark = i.benchmark AND g.chip_printed LIKE '%A100%'
    LEFT JOIN detail.mlperf_pair_tests AS t
        ON (t.round, t.path, t.other_round, t.other_path) = (i.round, i.path, g.round, g.path)
        OR (t.round, t.path, t.other_round, t.other_path) = (g.round, g.path, i.round, i.path)
    WHERE i.round = regexp_extract(c.document_id, 'v(\d+\.\d+)', 1)
)
SELECT ratio AS value, compared AS baseline, printf('%.4f min / %.4f min = %.4f', gpu, ipu, ratio) AS arithmetic,
    inputs, tied AS within_spread, NULL::VARCHAR AS reading
FROM pairs WHERE unit = 'x'
UNION ALL
SELECT 100 * (1 - 1 / ratio), compared || ', less time',
    printf('1 - %.4f min / %.4f min = %.2f %%', ipu, gpu, 100 * (1 - 1 / ratio)), inputs, tied,
    'less time'
FROM pairs WHERE unit = '%'
UNION ALL
SELECT 100 * (ratio - 1), compared || ', higher speed',
    printf('%.4f min / %.4f min - 1 = %.2f %%', gpu, ipu, 100 * (ratio - 1)), inputs, tied,
    'higher speed'
FROM pairs WHERE unit = '%'
ORDER BY baseline
