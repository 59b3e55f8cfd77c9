-- The derived columns of `results`, one row a result. schema/tables/results.toml defines each, and only the columns that
-- it names there as inputs can be read here; `known_*` are the lists of schema/vocabulary/derived.toml.
WITH flag_counts AS (
    SELECT
        result_id,
        count(*) FILTER (severity = 'error') AS errors,
        count(*) FILTER (severity = 'warn') AS warnings,
        count(*) FILTER (severity = 'info') AS remarks
    FROM flags
    GROUP BY result_id
),
entries AS (  -- official entries with a result
    SELECT e.*, c.dataset
    FROM mlperf_entries e
    LEFT JOIN detail.mlperf_comparability c ON c.benchmark = e.benchmark
        AND e.round::DOUBLE BETWEEN c.first_round::DOUBLE AND c.last_round::DOUBLE
    WHERE e.result_id IS NOT NULL
),
phases AS (
    SELECT v.model, v.variant, p.phase
    FROM (SELECT DISTINCT model, variant FROM results WHERE variant IS NOT NULL AND task = 'training') v
    JOIN known_phase p ON regexp_matches(v.variant, p.pattern) AND coalesce(p.model, v.model) = v.model
),
networks AS (  -- `model` is here the comparable model of an official entry
    SELECT v.model, v.variant, v.platform, v.framework, n.network
    FROM (
        SELECT DISTINCT coalesce(e.comparable_model, r.model) AS model, r.variant, r.platform, r.framework
        FROM results r LEFT JOIN entries e USING (result_id)
    ) v
    JOIN known_network n ON n.model = v.model
        AND (n.variant IS NULL OR regexp_matches(v.variant, n.variant))
        AND coalesce(n.platform, v.platform) = v.platform
        AND (n.framework IS NULL OR n.framework = v.framework)
),
quoted AS (  -- printed MLPerf times with the one official entry that they quote
    SELECT r.result_id, min(e.result_id) AS same_as
    FROM results r
    JOIN entries e ON e.mlperf_id = r.mlperf_id AND e.mlperf_id_confidence <> 'inferred'
    JOIN results o ON o.result_id = e.result_id AND o.model = r.model
    WHERE r.origin = 'published' AND abs(r.time_to_train_s / 60 / e.minutes - 1) <= 0.01
    GROUP BY r.result_id
    HAVING count(*) = 1
),
sparse AS (
    SELECT v.conditions, max(CAST(regexp_extract(v.conditions, p.pattern, 1) AS DOUBLE)) AS sparsity
    FROM (SELECT DISTINCT conditions FROM results WHERE conditions IS NOT NULL) v
    JOIN known_sparsity p ON regexp_matches(v.conditions, p.pattern)
    GROUP BY v.conditions
),
repeated AS (  -- rows that a newer version of a page prints with the same SDK and figures
    SELECT
        result_id, document_id, sdk_version,
        first_value(result_id) OVER versions AS newest, first_value(document_id) OVER versions AS newest_document
    FROM results
    WHERE origin = 'published' AND benchmark IS NULL AND sdk_version IS NOT NULL
    WINDOW versions AS (
        PARTITION BY
            publisher, task, model, variant, dataset, platform, sdk_version, framework, compiler, precision,
            compute_precision, batch_size, throughput, latency_ms, efficiency, power_w, time_to_train_s,
            time_to_result_s, quality_value
        ORDER BY published_on DESC NULLS LAST, document_id DESC, row_number
    )
)
SELECT
    r.result_id,
    coalesce(n.network, e.comparable_model, r.model) AS network,
    p.phase,
    CAST(nullif(regexp_extract(r.variant, '{sequence_length}', 1), '') AS BIGINT) AS sequence_length,
    CASE
        WHEN regexp_matches(r.variant, '(?i)\bpacked\b') OR d.packed = 'yes' THEN TRUE
        WHEN regexp_matches(r.variant, '{sequence_length}') THEN FALSE
    END AS packed,
    coalesce(d.canonical, r.dataset, e.dataset) AS dataset_canonical,
    e.submitter,
    coalesce(r.chip_count, nullif(e.accelerators, 0)) AS chips,
    r.throughput / chips AS throughput_per_chip,
    CASE WHEN r.latency_basis IS NULL OR r.latency_basis = 'per-batch' THEN 1000 * r.batch_size / r.latency_ms END
        AS throughput_implied,
    CASE WHEN r.time_to_train_s IS NOT NULL THEN coalesce(e.minutes, round(r.time_to_train_s / 60, 9)) END AS minutes,
    s.sparsity,
    coalesce(r.precision, c.canonical, r.compute_precision) AS effective_precision,
    CASE
        WHEN r.latency_basis IS DISTINCT FROM 'per-item' THEN r.throughput * r.latency_ms / 1000 / r.batch_size
    END AS batches_in_flight,
    CASE
        WHEN r.origin = 'official' THEN 'official'
        WHEN documents.kind = 'submission' THEN 'submitted'
        WHEN r.origin IN ('measured', 'emulated') THEN 'own'
        WHEN m.maker IN (r.publisher, documents.measured_by) THEN 'vendor'
        WHEN m.maker IS NOT NULL THEN 'independent'
        WHEN documents.measured_by IN (SELECT maker FROM known_maker) THEN 'vendor'
    END AS relationship,
    CASE WHEN r.conditions IS NOT NULL THEN regexp_matches(r.conditions, '(?i)\b(1st epoch|epoch 1 of|step 0)\b') END
        AS includes_start_up,
    nullif(documents.measured_by, r.publisher) AS measured_by,
    CASE WHEN r.run_energy_j IS NOT NULL THEN
        CASE
            WHEN regexp_matches(r.conditions, '\benergy of one hour\b') THEN 'one hour'
            WHEN regexp_matches(r.conditions, '\benergy of one epoch, (per|of) IPU\b') THEN 'one epoch, of one chip'
            WHEN regexp_matches(r.conditions, '\benergy of one epoch\b') THEN 'one epoch'
            WHEN regexp_matches(r.conditions, '\benergy of the run, of GPU\b') THEN 'one run, of one chip'
        END
    END AS run_energy_of,
    coalesce(f.errors, 0) AS errors,
    coalesce(f.warnings, 0) AS warnings,
    coalesce(f.remarks, 0) AS remarks,
    coalesce(q.same_as, CASE WHEN v.newest_document <> r.document_id THEN v.newest END) AS same_as
FROM results r
LEFT JOIN entries e USING (result_id)
LEFT JOIN networks n ON n.model = coalesce(e.comparable_model, r.model) AND n.variant IS NOT DISTINCT FROM r.variant
    AND n.platform = r.platform AND n.framework IS NOT DISTINCT FROM r.framework
LEFT JOIN phases p ON p.model = r.model AND p.variant = r.variant AND r.task = 'training'
LEFT JOIN known_dataset d ON d.dataset = coalesce(r.dataset, e.dataset)
LEFT JOIN known_maker m ON m.chip = r.chip
LEFT JOIN known_precision c ON c.precision = lower(regexp_replace(r.compute_precision, '[\s\-_]+', '', 'g'))
LEFT JOIN sparse s ON s.conditions = r.conditions
LEFT JOIN documents ON documents.document_id = r.document_id
LEFT JOIN flag_counts f USING (result_id)
LEFT JOIN quoted q USING (result_id)
LEFT JOIN repeated v USING (result_id)
