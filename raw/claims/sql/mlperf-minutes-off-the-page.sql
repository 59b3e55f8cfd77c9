-- Ids whose score from the official logs does not round to the minutes that the page prints.
SELECT
    e.minutes AS value,
    e.mlperf_id || ', printed ' || p.figure AS baseline,
    printf(
        '%.4f rounds to %.2f, printed %.2f: %.4f off', e.minutes, e.minutes, p.value, abs(p.value - e.minutes)
    ) AS arithmetic,
    ['claims:' || p.claim_id, 'mlperf_entries:' || e.round || '/' || e.path] AS inputs
FROM printed AS p
JOIN mlperf_entries AS e ON p.baseline = 'MLCommons ' || e.mlperf_id
WHERE abs(p.value - e.minutes) > p.digits_tolerance
ORDER BY e.mlperf_id, e.path
