WITH points AS (
    SELECT
        r.*,
        CASE WHEN NOT regexp_matches(r.variant, '^(lowest latency|higher throughput) config$') THEN r.variant END
            AS work
    FROM results r
    WHERE
        r.task = 'inference' AND r.benchmark IS DISTINCT FROM 'mlperf-training'
        AND r.throughput IS NOT NULL AND r.latency_ms IS NOT NULL
),
judged AS (
    SELECT
        *,
        CASE
            WHEN errors > 0 THEN 'error'
            WHEN suspect IS NOT NULL THEN 'suspect'
            WHEN latency_basis = 'per-item' THEN 'per-item'
        END AS left_out
    FROM points
)
SELECT
    result_id, origin, publisher, model, network, work, variant, dataset, platform, chip, chip_count,
    sdk_version, framework, compiler, precision, compute_precision, batch_size, throughput, item,
    latency_ms, latency_basis, latency_kind, batches_in_flight, errors, warnings, suspect, left_out,
    left_out IS NULL AND NOT EXISTS (
        FROM judged o
        WHERE
            o.left_out IS NULL AND o.origin = j.origin AND o.network = j.network AND o.platform = j.platform
            AND o.work IS NOT DISTINCT FROM j.work AND o.item IS NOT DISTINCT FROM j.item
            AND o.latency_ms <= j.latency_ms AND o.throughput >= j.throughput
            AND (o.latency_ms < j.latency_ms OR o.throughput > j.throughput)
    ) AS on_front,
    document_id, table_name, row_number
FROM judged j
