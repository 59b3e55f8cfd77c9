-- Score of each of Graphcore's IPU-POD64 entries in MLPerf Training 1.0 on BERT: one row per division.
SELECT
    minutes AS value,
    division || ' division, ' || platform || ', MLPerf Training ' || round AS baseline,
    printf('score of %d runs: %.4f min', n_runs, minutes) AS arithmetic,
    ['mlperf_entries:' || round || '/' || path] AS inputs,
    minutes_low AS low, minutes_high AS high, division
FROM mlperf_entries
WHERE round = '1.0' AND submitter = 'Graphcore' AND benchmark = 'bert' AND platform = 'IPU-POD64'
    AND minutes IS NOT NULL
ORDER BY division, path
