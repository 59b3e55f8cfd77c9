-- What Graphcore's BERT entries gained from MLPerf v1.0 to v1.1, in percent of the minutes, by division, beside the 5 and 12
-- that one paragraph of the blog prints for its two systems.
SELECT
    100 * (1 - n.minutes / b.minutes) AS value,
    n.platform_printed || ', ' || n.division || ' division, printed ' || p.figure AS baseline,
    printf('1 - %.4f min / %.4f min = %.2f %%', n.minutes, b.minutes, 100 * (1 - n.minutes / b.minutes))
        AS arithmetic,
    [
        'claims:' || p.claim_id,
        'mlperf_entries:' || b.round || '/' || b.path,
        'mlperf_entries:' || n.round || '/' || n.path
    ] AS inputs
FROM printed AS p
JOIN mlperf_entries AS n ON n.platform_printed = p.subject
JOIN mlperf_entries AS b
    ON b.platform_printed = n.platform_printed AND b.division = n.division
    AND b.benchmark = n.benchmark AND b.submitter = n.submitter
WHERE p.claim_id IN ('mlperf2021b-bert-pod16-gain', 'mlperf2021b-bert-pod64-gain')
    AND n.submitter = 'Graphcore' AND n.benchmark = 'bert' AND n.round = '1.1' AND b.round = '1.0'
ORDER BY n.division, p.claim_id
