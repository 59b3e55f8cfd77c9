-- Minutes of Baidu's PaddlePaddle entries on BERT over Graphcore's PopART entries with as many IPUs, closed division. That
-- the runs cannot separate two scores is what the claim says, so it is not a reason to doubt it.
SELECT
    b.minutes / g.minutes AS value,
    printf('%d IPUs, MLPerf Training %s, closed division', g.chip_count, g.round) AS baseline,
    printf(
        '%.4f min / %.4f min = %.4f; the runs %s the two', b.minutes, g.minutes, b.minutes / g.minutes,
        CASE WHEN t.p_value >= 0.05 THEN 'cannot separate' ELSE 'separate' END
    ) AS arithmetic,
    [
        'mlperf_entries:' || b.round || '/' || b.path, 'mlperf_entries:' || g.round || '/' || g.path
    ] AS inputs
FROM claim AS c
JOIN mlperf_entries AS b ON b.submitter = 'Baidu' AND b.chip_printed ILIKE '%IPU%' AND b.division = 'closed'
JOIN mlperf_entries AS g
    ON g.submitter = 'Graphcore' AND g.round = b.round AND g.benchmark = b.benchmark AND g.division = b.division
    AND g.chip_count = b.chip_count AND g.framework LIKE 'PopART%'
LEFT JOIN detail.mlperf_pair_tests AS t
    ON (t.round, t.path, t.other_round, t.other_path) = (b.round, b.path, g.round, g.path)
    OR (t.round, t.path, t.other_round, t.other_path) = (g.round, g.path, b.round, b.path)
WHERE b.round = regexp_extract(c.document_id, 'v(\d+\.\d+)', 1)
ORDER BY g.chip_count
