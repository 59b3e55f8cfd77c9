-- Minutes of Graphcore's entries on the IPU Bow, MLPerf Training 2.0, over those of Google's last entry with as many TPU v4 in a
-- round that is comparable by the official list. Both in the closed division.
WITH spans AS (SELECT * FROM detail.mlperf_comparability),
bow AS (
    SELECT e.*
    FROM claim AS c
    JOIN mlperf_entries AS e ON e.round = '2.0' AND e.division = 'closed' AND e.submitter = 'Graphcore'
        AND e.chip_printed ILIKE '%bow%'
    JOIN results AS r ON r.result_id = e.result_id AND r.model_printed = c.model_printed
    QUALIFY row_number() OVER (PARTITION BY e.chip_count ORDER BY e.minutes, e.path) = 1
),
tpu AS (
    SELECT e.*
    FROM mlperf_entries AS e
    JOIN spans AS s
        ON s.benchmark = e.benchmark AND e.round::DOUBLE >= s.first_round::DOUBLE AND e.round::DOUBLE <= s.last_round::DOUBLE
        AND 2.0 BETWEEN s.first_round::DOUBLE AND s.last_round::DOUBLE
    WHERE e.submitter = 'Google' AND e.division = 'closed' AND e.platform_printed LIKE 'tpu-v4%' AND e.minutes IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY e.benchmark, e.chip_count ORDER BY e.round DESC, e.minutes, e.path) = 1
)
SELECT
    b.minutes / t.minutes AS value,
    t.chip_count || ' chips each; ' || t.platform_printed || ' in ' || t.round || ' against ' || b.platform_printed || ' in ' || b.round
        AS baseline,
    printf('%.4f min / %.4f min = %.4f', b.minutes, t.minutes, b.minutes / t.minutes) AS arithmetic,
    ['mlperf_entries:' || b.round || '/' || b.path, 'mlperf_entries:' || t.round || '/' || t.path] AS inputs,
    CASE
        WHEN t.round <> b.round THEN 'Google''s last earlier entry with as many chips, as round 2.0 has none'
    END AS stand_in
FROM bow AS b
JOIN tpu AS t ON t.benchmark = b.benchmark AND t.chip_count = b.chip_count
ORDER BY t.chip_count
