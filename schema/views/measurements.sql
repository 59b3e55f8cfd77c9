SELECT r.*, r.time_to_train_s / 60 AS minutes, e.path
FROM results r
LEFT JOIN mlperf_entries e USING (result_id)
WHERE r.same_as IS NULL AND r.origin <> 'emulated' AND r.sparsity IS NULL AND r.relationship IS DISTINCT FROM 'submitted'
    AND r.document_id NOT IN (SELECT document_id FROM documents WHERE figures_are IS NOT NULL)
