WITH rows AS (
    SELECT * FROM detail.record
    WHERE origin = 'published' AND benchmark IS NULL AND throughput IS NOT NULL
    QUALIFY row_number() OVER (
        PARTITION BY
            publisher, task, model, variant, dataset, platform, framework, compiler, precision, compute_precision,
            batch_size, sdk_version
        ORDER BY published_on DESC NULLS LAST, document_id DESC, row_number
    ) = 1
)
SELECT
    r.task, r.model, r.variant, r.dataset, r.platform, r.chip_count, r.sdk_version, r.precision, r.batch_size,
    r.framework, b.framework AS base_framework, r.network, b.network AS base_network,
    r.network = b.network AS same_network, r.throughput, b.throughput AS base_throughput, r.item,
    r.throughput / b.throughput AS throughput_ratio,
    r.batches_in_flight, b.batches_in_flight AS base_batches_in_flight, r.errors + b.errors AS errors,
    r.warnings + b.warnings AS warnings, r.result_id, b.result_id AS base_result_id
FROM rows r
JOIN rows b
    ON b.publisher = r.publisher AND b.task = r.task AND b.model = r.model AND b.platform = r.platform
    AND b.sdk_version = r.sdk_version AND b.batch_size = r.batch_size AND b.precision = r.precision
    AND b.variant IS NOT DISTINCT FROM r.variant AND b.dataset IS NOT DISTINCT FROM r.dataset
    AND b.item IS NOT DISTINCT FROM r.item AND b.framework < r.framework
