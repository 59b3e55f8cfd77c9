SELECT
    r.result_id, r.origin, r.publisher, nullif(r.model, 'ResNeXt101') AS model,
    CASE WHEN r.model_printed <> 'ResNeXt101' THEN 'named' WHEN r.model <> r.model_printed THEN 'flag R20' END
        AS model_source,
    r.platform, r.chip, r.chip_count, r.sdk_version, r.framework, r.precision, r.dataset, r.batch_size,
    r.micro_batch_size, r.throughput, r.throughput_per_chip, r.item, r.latency_ms,
    r.latency_basis,
    r.batches_in_flight,
    CASE WHEN r.origin <> 'emulated' THEN r.efficiency END AS efficiency,
    CASE WHEN r.origin = 'emulated' THEN r.efficiency END AS emulated_efficiency,
    r.conditions, r.usable, r.errors, s.message AS suspect, r.run_id, r.document_id, r.table_name, r.row_number, r.published_on, p.remark
FROM (SELECT *, {batches_in_flight} AS batches_in_flight FROM results) r
LEFT JOIN detail.latency_points p USING (result_id)
LEFT JOIN flags s ON s.result_id = r.result_id AND s.rule = 'R47'
WHERE r.task = 'inference' AND r.model_printed LIKE 'ResNeXt101%' AND r.relationship IS DISTINCT FROM 'submitted'
