-- Each score of MLPerf with the logs that it is computed from, each with its digest.
SELECT
    'minutes' AS kind, d.file, d.sha256,
    list(
        {'file': r.file, 'sha256': r.sha256, 'counted': r.counted, 'minutes': r.minutes}
        ORDER BY r.file
    ) AS logs,
    e.benchmark, coalesce(e.scaling_factor, 1) AS factor, 'mlperf_entries.csv' AS stated,
    {'round': e.round, 'path': e.path}::JSON AS key, 'minutes' AS "in", e.minutes AS figure
FROM mlperf_entries e
JOIN mlperf_runs r ON r.round = e.round AND r.path = e.path
JOIN documents d ON d.document_id = r.document_id
WHERE e.minutes IS NOT NULL
GROUP BY ALL
ORDER BY any_value(e.round), any_value(e.path)
