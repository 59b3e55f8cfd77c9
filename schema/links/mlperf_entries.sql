-- The table `mlperf_entries`: the entries with the intervals of their scores.
SELECT
    e.*,
    e.minutes * i.low AS minutes_low,
    e.minutes * i.high AS minutes_high,
    i.method AS interval_method,
    len(s.run_minutes) AS interval_runs,
    CASE
        WHEN e.minutes IS NULL THEN 'it has no score'
        WHEN i.place IS NULL THEN 'fewer than 3 counted runs with different logs'
    END AS no_interval_reason
FROM entries e
LEFT JOIN scored s USING (round, path)
LEFT JOIN intervals i USING (place)
