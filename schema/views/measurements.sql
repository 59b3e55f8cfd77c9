SELECT results.*, mlperf_entries.path
FROM results
LEFT JOIN mlperf_entries USING (result_id)
WHERE same_as IS NULL
