-- Each score of MLPerf with the logs that it is computed from, each with its digest.
SELECT
    e.round, e.path, e.benchmark, d.file, d.sha256, e.minutes AS figure,
    coalesce(e.scaling_factor, 1) AS factor,
    list(
        {'file': r.file, 'sha256': r.sha256, 'counted': r.counted, 'minutes': r.minutes}
        ORDER BY r.file
    ) AS logs
FROM mlperf_entries e
JOIN mlperf_runs r ON r.round = e.round AND r.path = e.path
JOIN documents d ON d.document_id = r.document_id
WHERE e.minutes IS NOT NULL
GROUP BY ALL
ORDER BY e.round, e.path
