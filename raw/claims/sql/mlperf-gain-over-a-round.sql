-- What Graphcore's entries on the claim's model gained over the round that the baseline names, with as many IPUs, in one
-- division and with one framework, in both readings of a percentage. within_spread: the runs cannot separate the two.
WITH entries AS (
    SELECT e.*, r.model_printed, r.framework AS framework_name
    FROM mlperf_entries AS e
    JOIN results AS r ON r.result_id = e.result_id
    WHERE e.submitter = 'Graphcore'
),
pairs AS (
    SELECT
        b.minutes AS before, n.minutes AS now,
        ['mlperf_entries:' || b.round || '/' || b.path, 'mlperf_entries:' || n.round || '/' || n.path] AS inputs,
        n.platform_printed || ' in ' || n.round || ' against ' || b.platform_printed || ' in ' || b.round || ', ' || n.division
            || ' division' AS compared,
        t.p_value >= 0.05 AS tied, n.division, n.platform_printed AS system
    FROM claim AS c
    JOIN entries AS n ON n.model_printed = c.model_printed AND c.subject IN (n.platform_printed, n.submitter)
    JOIN entries AS b
        ON b.model_printed = n.model_printed AND b.division = n.division AND b.chip_count = n.chip_count
        AND b.framework_name = n.framework_name
    LEFT JOIN detail.mlperf_pair_tests AS t
        ON (t.round, t.path, t.other_round, t.other_path) = (b.round, b.path, n.round, n.path)
        OR (t.round, t.path, t.other_round, t.other_path) = (n.round, n.path, b.round, b.path)
    WHERE n.round = regexp_extract(c.document_id, 'v(\d+\.\d+)', 1)
        AND b.round = regexp_extract(c.baseline, '\d+\.\d+')
)
SELECT 100 * (1 - now / before) AS value, compared || ', less time' AS baseline,
    printf('1 - %.4f min / %.4f min = %.2f %%', now, before, 100 * (1 - now / before)) AS arithmetic,
    inputs, tied AS within_spread, 'less time' AS reading,
    division, system
FROM pairs
UNION ALL
SELECT 100 * (before / now - 1), compared || ', higher speed',
    printf('%.4f min / %.4f min - 1 = %.2f %%', before, now, 100 * (before / now - 1)), inputs, tied,
    'higher speed', division, system
FROM pairs
ORDER BY baseline
