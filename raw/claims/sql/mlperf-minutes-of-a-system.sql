-- Score of the claim's system on its model in the round of its document, in the division that the baseline names, if it does.
SELECT
    e.minutes AS value,
    e.division || ' division, ' || e.platform || ', MLPerf Training ' || e.round AS baseline,
    printf('score of %d runs: %.4f min, from %.2f to %.2f at 95 %%', e.n_runs, e.minutes, e.minutes_low, e.minutes_high)
        AS arithmetic,
    ['mlperf_entries:' || e.round || '/' || e.path] AS inputs,
    e.minutes_low AS low, e.minutes_high AS high
FROM claim AS c
JOIN mlperf_entries AS e ON e.submitter = 'Graphcore' AND e.platform = c.subject
JOIN results AS r ON r.result_id = e.result_id AND r.model_printed = c.model_printed
WHERE e.round = regexp_extract(c.document_id, 'v(\d+\.\d+)', 1)
    AND 'MLPerf Training ' || e.round || ' ' || e.division LIKE c.baseline || '%'
ORDER BY e.division, e.path
