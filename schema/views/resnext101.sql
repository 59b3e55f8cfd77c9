WITH named AS (
    SELECT
        r.*, f.suggested,
        (SELECT count(*) FROM flags g WHERE g.result_id = r.result_id AND g.severity = 'error') AS errors,
        (SELECT count(*) FROM flags g WHERE g.result_id = r.result_id AND g.severity = 'warn') AS warnings
    FROM results r
    LEFT JOIN flags f ON f.result_id = r.result_id AND f.rule = 'R20' AND f.column_name = 'model'
    WHERE r.task = 'inference' AND r.model LIKE 'ResNeXt101%'
)
SELECT
    result_id, origin, publisher,
    CASE
        WHEN model <> 'ResNeXt101' THEN model
        WHEN suggested IS NOT NULL THEN suggested
    END AS network,
    CASE
        WHEN model <> 'ResNeXt101' THEN 'named'
        WHEN suggested IS NOT NULL THEN 'flag R20'
    END AS network_source,
    platform, chip, chip_count, sdk_version, framework, compiler, precision, compute_precision,
    dataset, batch_size, micro_batch_size, throughput, throughput / chip_count AS throughput_per_chip, item,
    latency_ms, latency_ms_low, latency_ms_high, latency_kind, latency_basis,
    throughput * latency_ms / (1000 * batch_size) AS batches_in_flight,
    efficiency, suspect, calibration_id, run_id, errors, warnings,
    document_id, table_name, row_number, published_on
FROM named
