WITH f AS (
    FROM figures
    PIVOT (
        max(value) FOR metric IN ('latency_ms_low', 'latency_ms_high', 'latency_isolated_ms', 'power_w')
        GROUP BY result_id
    )
)
SELECT
    r.result_id, r.origin, r.publisher, r.relationship, r.task, r.model, r.model_printed, r.variant, r.sequence_length,
    r.packed, r.platform, r.chip, r.chip_count, r.framework, r.precision, r.precision_printed, r.batch_size,
    r.micro_batch_size, r.throughput, r.item, r.throughput_per_chip, r.throughput_implied, r.latency_ms,
    f.latency_ms_low, f.latency_ms_high, f.latency_isolated_ms, r.efficiency, f.power_w, r.power_scope, p.calibration_id,
    r.usable, r.errors, r.warnings, r.run_id, r.document_id, r.table_name, r.row_number, r.published_on
FROM results r
LEFT JOIN f USING (result_id)
LEFT JOIN detail.run_points p USING (result_id)
WHERE r.origin = 'emulated'
