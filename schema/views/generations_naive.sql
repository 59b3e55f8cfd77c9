WITH rows AS (
    SELECT
        r.*,
        p.family,
        p.clock_ghz,
        TRY_CAST(string_split(replace(r.sdk_version, 'Pre-SDK2.5', '2.4'), '.') AS INTEGER[]) AS sdk
    FROM detail.record r
    JOIN platforms p ON p.platform = r.platform
    WHERE
        r.origin = 'published' AND r.relationship = 'vendor' AND r.benchmark IS NULL AND p.family IN ('Bow', 'Classic')
        AND r.throughput IS NOT NULL AND r.chip_count IS NOT NULL
    QUALIFY row_number() OVER (
        PARTITION BY
            task, model, variant, dataset, r.platform, framework, precision, batch_size, sdk_version, throughput
        ORDER BY r.published_on DESC NULLS LAST, r.document_id DESC, row_number
    ) = 1
)
SELECT
    b.task, b.model, b.chip_count,
    b.platform AS bow_platform, c.platform AS classic_platform,
    b.variant AS bow_variant, c.variant AS classic_variant,
    b.dataset AS bow_dataset, c.dataset AS classic_dataset,
    b.framework AS bow_framework, c.framework AS classic_framework,
    b.precision AS bow_precision, c.precision AS classic_precision,
    b.batch_size AS bow_batch_size, c.batch_size AS classic_batch_size,
    b.sdk_version AS bow_sdk_version, c.sdk_version AS classic_sdk_version,
    b.item,
    b.throughput AS bow_throughput, c.throughput AS classic_throughput,
    b.throughput / c.throughput AS throughput_ratio,
    b.latency_ms AS bow_latency_ms, c.latency_ms AS classic_latency_ms,
    CASE
        WHEN b.latency_basis IS NOT DISTINCT FROM c.latency_basis
            AND b.batches_in_flight / c.batches_in_flight BETWEEN 1 / 1.25 AND 1.25
            THEN b.latency_ms / c.latency_ms
    END AS latency_ratio,
    b.clock_ghz / c.clock_ghz AS clock_ratio,
    b.network = c.network AND b.variant IS NOT DISTINCT FROM c.variant AND b.dataset IS NOT DISTINCT FROM c.dataset
        AS same_test,
    coalesce(b.framework = c.framework, FALSE) AS same_framework,
    coalesce(b.precision = c.precision, FALSE) AS same_precision,
    coalesce(b.batch_size = c.batch_size, FALSE) AS same_batch,
    coalesce(b.item = c.item, FALSE) AS same_item,
    coalesce(b.sdk[1] = c.sdk[1] AND abs(b.sdk[2] - c.sdk[2]) <= 1, FALSE) AS near_sdk,
    b.errors + c.errors AS errors,
    b.result_id AS bow_result_id, c.result_id AS classic_result_id
FROM rows b
JOIN rows c ON c.task = b.task AND c.model = b.model AND c.chip_count = b.chip_count
WHERE b.family = 'Bow' AND c.family = 'Classic'
