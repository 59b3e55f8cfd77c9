SELECT record.*, mlperf_entries.path
FROM detail.record
LEFT JOIN mlperf_entries USING (result_id)
WHERE record.same_as IS NULL AND origin <> 'emulated' AND sparsity IS NULL
