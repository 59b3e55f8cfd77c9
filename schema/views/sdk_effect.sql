WITH rows AS (
    SELECT
        *, {by_xla} AS by_xla,
        TRY_CAST(string_split(replace(sdk_version, 'Pre-SDK2.5', '2.4'), '.') AS INTEGER[]) AS sdk
    FROM results
    WHERE origin = 'published' AND benchmark IS NULL AND throughput IS NOT NULL AND batch_size IS NOT NULL AND usable
        AND platform IN (SELECT platform FROM platforms WHERE family IN ({ipu_families}))
),
kept AS (
    FROM rows
    WHERE sdk IS NOT NULL
    QUALIFY row_number() OVER (
        PARTITION BY
            publisher, task, model, variant, dataset_printed, platform, framework, by_xla, precision_printed, batch_size,
            sdk_version
        ORDER BY published_on DESC NULLS LAST, document_id DESC, row_number
    ) = 1
),
compared AS (
    SELECT
        *,
        count(*) OVER same AS versions,
        row_number() OVER by_age AS position,
        first_value(sdk_version) OVER by_age AS oldest_sdk_version,
        first_value(throughput) OVER by_age AS oldest_throughput,
        first_value(result_id) OVER by_age AS oldest_result_id
    FROM kept
    WINDOW
        same AS (
            PARTITION BY
                publisher, task, model, variant, dataset_printed, platform, framework, by_xla, precision_printed,
                batch_size
        ),
        by_age AS (same ORDER BY sdk)
)
SELECT
    task, model, variant, dataset, platform, chip_count, framework, precision, batch_size,
    sdk_version, position, throughput, item, oldest_sdk_version, oldest_throughput,
    throughput / oldest_throughput AS throughput_ratio, usable, document_id, result_id, oldest_result_id
FROM compared
WHERE versions > 1
