WITH counted AS (  -- a row that another page repeats is compared on the page of its own curve
    SELECT r.* REPLACE (r.usable OR (r.same_as IS NOT NULL AND r.errors = 0) AS usable), p.family
    FROM results r
    JOIN platforms p USING (platform)
    WHERE r.task = 'training' AND r.chip_count >= 16 AND p.family IN ('Classic', 'Bow')
),
throughputs AS (
    SELECT
        *,
        first_value(result_id) OVER curve AS base_result_id,
        first_value(platform) OVER curve AS base_platform,
        first_value(chip_count) OVER curve AS base_chip_count,
        first_value(sdk_version) OVER curve AS base_sdk_version,
        first_value(batch_size) OVER curve AS base_batch_size,
        first_value(throughput) OVER curve AS base_throughput,
        first_value(usable) OVER curve AS base_usable,
        throughput / base_throughput AS speed_up
    FROM counted
    WHERE origin = 'published' AND benchmark IS NULL AND throughput IS NOT NULL
    WINDOW curve AS (
        PARTITION BY
            publisher, document_id, table_name, family, model_printed, variant, dataset_printed, framework,
            precision_printed
        ORDER BY chip_count, result_id
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
    )
    QUALIFY last_value(chip_count) OVER curve > base_chip_count
),
entries AS (
    SELECT
        r.*, e.benchmark AS mlperf_benchmark, e.submitter, e.round, e.comparable_rounds, e.minutes, e.global_batch_size,
        e.samples_to_converge, e.mlperf_id AS entry_id, e.mlperf_id_confidence, e.attribution,
        first_value(r.result_id) OVER curve AS base_result_id,
        first_value(r.platform) OVER curve AS base_platform,
        first_value(r.chip_count) OVER curve AS base_chip_count,
        first_value(r.sdk_version) OVER curve AS base_sdk_version,
        first_value(e.global_batch_size) OVER curve AS base_batch_size,
        first_value(e.minutes) OVER curve AS base_minutes,
        first_value(r.usable) OVER curve AS base_usable,
        first_value(e.attribution) OVER curve AS base_attribution,
        first_value(e.samples_to_converge) OVER curve / e.samples_to_converge AS samples_efficiency,
        base_minutes / e.minutes AS speed_up
    FROM mlperf_entries e
    JOIN counted r USING (result_id)
    WHERE e.submitter = 'Graphcore' AND e.division = 'closed' AND e.minutes IS NOT NULL
    WINDOW curve AS (
        PARTITION BY e.round, e.division, e.benchmark, e.framework
        ORDER BY r.chip_count, r.result_id
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
    )
    QUALIFY last_value(r.chip_count) OVER curve > base_chip_count
),
curves AS (
    SELECT
        'throughput' AS measure, origin, publisher, family, model, variant, dataset, framework, precision,
        platform, chip_count, sdk_version, batch_size, throughput, item,
        base_platform, base_chip_count, base_sdk_version, base_batch_size,
        sdk_version IS NOT DISTINCT FROM base_sdk_version AS same_sdk,
        speed_up, speed_up * base_chip_count / chip_count AS scaling_efficiency,
        usable AND base_usable AS usable,
        result_id, base_result_id, document_id, table_name, row_number,
        batch_size / base_batch_size AS batch_ratio, conditions
    FROM throughputs
    QUALIFY row_number() OVER (
        PARTITION BY
            publisher, family, model_printed, variant, dataset_printed, framework, precision_printed, platform,
            sdk_version, batch_size, throughput, base_platform, base_sdk_version, base_batch_size, base_throughput
        ORDER BY published_on DESC NULLS LAST, document_id DESC, row_number
    ) = 1
    UNION ALL BY NAME
    SELECT
        'mlperf time to train' AS measure, origin, publisher, family, model, variant, dataset, framework, precision,
        platform, chip_count, sdk_version, global_batch_size AS batch_size,
        minutes, samples_to_converge,
        base_platform, base_chip_count, base_sdk_version, base_batch_size,
        sdk_version IS NOT DISTINCT FROM base_sdk_version AS same_sdk,
        speed_up, speed_up * base_chip_count / chip_count AS scaling_efficiency,
        samples_efficiency, speed_up * base_chip_count / chip_count / samples_efficiency AS rate_efficiency,
        usable AND base_usable AS usable,
        result_id, base_result_id, document_id, table_name, row_number,
        mlperf_benchmark AS benchmark, submitter, round, division, comparable_rounds, entry_id AS mlperf_id,
        mlperf_id_confidence,
        attribution || CASE WHEN result_id = base_result_id THEN '' ELSE '; against ' || base_attribution END
            || '; speed-up and efficiency are not MLPerf metrics' AS attribution,
        global_batch_size / base_batch_size AS batch_ratio
    FROM entries
)
SELECT
    *,
    CASE
        WHEN chip_count = base_chip_count THEN 'smallest'
        WHEN batch_ratio BETWEEN 1 / 1.02 AND 1.02 THEN 'fixed'
        WHEN batch_ratio BETWEEN chip_count / base_chip_count / 1.02 AND chip_count / base_chip_count * 1.02
            THEN 'grown-with-chips'
        WHEN batch_ratio > 1 THEN 'grown'
        WHEN batch_ratio < 1 THEN 'reduced'
    END AS batch_growth,
    CASE
        WHEN result_id IN (SELECT result_id FROM flags WHERE rule = 'R08')
            THEN 'more throughput per chip than on fewer chips, by rule R08'
        WHEN NOT usable THEN 'a row is not usable'
        WHEN NOT same_sdk THEN 'the SDKs differ'
        WHEN batch_growth IS NULL THEN 'a batch is not stated'
    END AS excluded_because
FROM curves
