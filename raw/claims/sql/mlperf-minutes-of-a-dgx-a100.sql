-- Score of NVIDIA's own entry on eight A100 of one node, closed division, on the claim's model in the round of its document.
SELECT
    e.minutes AS value,
    e.division || ' division, ' || e.platform || ', MLPerf Training ' || e.round AS baseline,
    printf('score of %d runs: %.4f min, from %.2f to %.2f at 95 %%', e.n_runs, e.minutes, e.minutes_low, e.minutes_high)
        AS arithmetic,
    ['mlperf_entries:' || e.round || '/' || e.path] AS inputs,
    e.minutes_low AS low, e.minutes_high AS high
FROM claim AS c
JOIN mlperf_entries AS e ON e.submitter = 'NVIDIA' AND e.division = 'closed' AND e.chip_count = 8 AND e.nodes = 1
JOIN results AS r ON r.result_id = e.result_id AND r.model_printed = c.model_printed
WHERE e.round = regexp_extract(c.document_id, 'v(\d+\.\d+)', 1) AND e.chip_printed LIKE '%A100%'
ORDER BY e.path
