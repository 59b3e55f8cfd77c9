WITH rows AS (
    SELECT
        r.*,
        p.family,
        p.clock_ghz,
        TRY_CAST(string_split(replace(r.sdk_version, 'Pre-SDK2.5', '2.4'), '.') AS INTEGER[]) AS sdk
    FROM results r
    JOIN platforms p ON p.platform = r.platform
    WHERE
        r.origin = 'published' AND r.relationship = 'vendor' AND r.benchmark IS NULL AND p.family IN ('Bow', 'Classic')
        AND r.throughput IS NOT NULL AND r.same_as IS NULL
)
SELECT
    b.task, b.model, b.variant, b.dataset, b.chip_count, b.platform AS bow_platform, c.platform AS classic_platform,
    b.framework, b.precision, b.batch_size, b.sdk_version AS bow_sdk_version, c.sdk_version AS classic_sdk_version,
    coalesce(b.item, c.item) AS item, b.throughput AS bow_throughput, c.throughput AS classic_throughput,
    b.throughput / c.throughput AS throughput_ratio,
    b.clock_ghz / c.clock_ghz AS clock_ratio,
    b.sdk[1] = c.sdk[1] AND abs(b.sdk[2] - c.sdk[2]) <= 1 AS near_sdk,
    b.usable AND c.usable AS usable,
    CASE
        WHEN NOT (b.usable AND c.usable) THEN 'a row is not usable'
        WHEN b.item IS NULL OR c.item IS NULL THEN 'no source says what its items are'
        WHEN b.item <> c.item THEN 'the items differ'
    END AS excluded_because,
    b.document_id AS bow_document_id, c.document_id AS classic_document_id,
    b.result_id AS bow_result_id, c.result_id AS classic_result_id
FROM rows b
JOIN rows c
    ON c.task = b.task AND c.model_printed = b.model_printed AND c.model = b.model AND c.chip_count = b.chip_count
    AND c.variant IS NOT DISTINCT FROM b.variant AND c.dataset_printed IS NOT DISTINCT FROM b.dataset_printed
    AND c.framework = b.framework AND c.precision_printed = b.precision_printed AND c.batch_size = b.batch_size
WHERE b.family = 'Bow' AND c.family = 'Classic'
