WITH rows AS (
    SELECT
        *,
        {batches_in_flight} AS batches_in_flight
    FROM results
    WHERE origin = 'published' AND benchmark IS NULL AND throughput IS NOT NULL
        AND platform IN (SELECT platform FROM platforms WHERE family IN ({ipu_families}))
    QUALIFY row_number() OVER (
        PARTITION BY
            publisher, task, model_printed, variant, dataset_printed, platform, framework,
            {by_xla}, precision_printed, batch_size, sdk_version
        ORDER BY published_on DESC NULLS LAST, document_id DESC, row_number
    ) = 1
)
SELECT
    r.task, r.model_printed, r.variant, r.dataset, r.platform, r.chip_count, r.sdk_version, r.precision, r.batch_size,
    r.framework, b.framework AS base_framework, r.model, b.model AS base_model,
    r.model = b.model AS same_model, r.throughput, b.throughput AS base_throughput, r.item,
    r.throughput / b.throughput AS throughput_ratio,
    r.batches_in_flight, b.batches_in_flight AS base_batches_in_flight, r.usable AND b.usable AS usable,
    r.result_id, b.result_id AS base_result_id
FROM rows r
JOIN rows b
    ON b.publisher = r.publisher AND b.task = r.task AND b.model_printed = r.model_printed AND b.platform = r.platform
    AND b.sdk_version = r.sdk_version AND b.batch_size = r.batch_size AND b.precision_printed = r.precision_printed
    AND b.variant IS NOT DISTINCT FROM r.variant AND b.dataset_printed IS NOT DISTINCT FROM r.dataset_printed
    AND b.item IS NOT DISTINCT FROM r.item AND b.framework < r.framework
