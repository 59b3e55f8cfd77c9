WITH points AS (
    FROM detail.latency_points
    WHERE throughput IS NOT NULL
)
SELECT
    result_id, origin, relationship, publisher, model, variant, work, dataset, platform, chip, chip_count,
    sdk_version, framework, precision, batch_size, throughput, item, latency_ms, latency_basis, batches_in_flight,
    usable, left_out,
    left_out IS NULL AND NOT EXISTS (
        FROM points o
        WHERE
            o.left_out IS NULL AND o.origin = j.origin AND o.relationship IS NOT DISTINCT FROM j.relationship
            AND o.work = j.work AND o.platform = j.platform AND o.item IS NOT DISTINCT FROM j.item
            AND o.latency_ms <= j.latency_ms AND o.throughput >= j.throughput
            AND (o.latency_ms < j.latency_ms OR o.throughput > j.throughput)
    ) AS on_front,
    document_id, table_name, row_number, conditions, remark
FROM points j
