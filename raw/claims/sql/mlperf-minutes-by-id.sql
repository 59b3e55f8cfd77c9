-- The score that the official rule gives from the logs of the entry that bears the id in the claim's baseline.
SELECT
    e.minutes AS value,
    'official logs, ' || e.division || ' division, ' || e.path AS baseline,
    printf('score of %d runs: %.4f min', e.n_runs, e.minutes) AS arithmetic,
    ['mlperf_entries:' || e.round || '/' || e.path] AS inputs,
    e.minutes_low AS low, e.minutes_high AS high
FROM claim AS c
JOIN mlperf_entries AS e ON c.baseline = 'MLCommons ' || e.mlperf_id
ORDER BY e.path
