-- The derived columns of `results`, one row a result. schema/tables/results.toml defines each, and only the columns that
-- it names there as inputs can be read here; `known_*` are lists of the vocabulary.
WITH known_model AS (
    FROM (VALUES {derived.model: model_printed, variant, platform, framework, model})
        AS known (model_printed, variant, platform, framework, model)
    UNION ALL
    SELECT model_printed, NULL, platform, framework, model
    FROM (VALUES {identities.identity: model_printed, platform, framework, model})
        AS known (model_printed, platform, framework, model)
),
known_phase AS (
    FROM (VALUES {derived.phase: model_printed, pattern, phase})
        AS known (model_printed, pattern, phase)
),
known_dataset AS (
    FROM (VALUES {derived.dataset: dataset_printed, dataset, packed})
        AS known (dataset_printed, dataset, packed)
),
known_sparsity AS (FROM (VALUES {derived.sparsity: pattern}) AS known (pattern)),
known_parallelism AS (FROM (VALUES {derived.parallelism: name, prefix, rank}) AS known (name, prefix, rank)),
known_concurrency AS (FROM (VALUES {derived.concurrency: name, rank}) AS known (name, rank)),
known_precision AS (  -- by each spelling, and by the name itself
    SELECT DISTINCT unnest([normalise_name(name), normalise_name(spelling)]) AS precision, name
    FROM (VALUES {precisions.names: name, value}) AS known (name, spelling)
),
flag_counts AS (
    SELECT
        result_id,
        count(*) FILTER (severity = 'error') AS errors,
        count(*) FILTER (severity = 'warn') AS warnings,
        bool_or(rule = 'R47') AS is_suspect
    FROM flags
    GROUP BY result_id
),
entries AS (  -- official entries with a result
    SELECT e.*, c.dataset
    FROM mlperf_entries e
    LEFT JOIN detail.mlperf_comparability c ON c.benchmark = e.benchmark
        AND order_round(e.round) BETWEEN order_round(c.first_round) AND order_round(c.last_round)
    WHERE e.result_id IS NOT NULL
),
phases AS (
    SELECT v.model_printed, v.variant, p.phase
    FROM (SELECT DISTINCT model_printed, variant FROM results WHERE variant IS NOT NULL AND task = 'training') v
    JOIN known_phase p
        ON regexp_matches(v.variant, p.pattern) AND coalesce(p.model_printed, v.model_printed) = v.model_printed
),
models AS (  -- printed names that stand for several networks
    SELECT v.model_printed, v.variant, v.platform, v.framework, n.model
    FROM (SELECT DISTINCT model_printed, variant, platform, framework FROM results) v
    JOIN known_model n ON n.model_printed = v.model_printed
        AND (n.variant IS NULL OR regexp_matches(v.variant, n.variant))
        AND coalesce(n.platform, v.platform) = v.platform
        AND (n.framework IS NULL OR n.framework = v.framework)
),
quoted AS (  -- printed MLPerf times with the one official entry that they quote
    SELECT r.result_id, min(e.result_id) AS same_as
    FROM results r
    JOIN entries e ON e.mlperf_id = r.mlperf_id AND e.mlperf_id_confidence <> 'inferred'
    JOIN results o ON o.result_id = e.result_id AND o.model_printed = r.model_printed
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
statements AS (  -- `name = text` of a column that is a condition
    SELECT conditions, position, split_part(statement, ' = ', 1) AS name, regexp_extract(statement, ' = (.+)', 1) AS text
    FROM (
        SELECT
            conditions, unnest(string_split(conditions, '; ')) AS statement,
            generate_subscripts(string_split(conditions, '; '), 1) AS position
        FROM (SELECT DISTINCT conditions FROM results WHERE conditions LIKE '% = %')
    )
),
splits AS (
    SELECT s.*, concat(p.prefix, s.text) AS split
    FROM statements s
    JOIN known_parallelism p USING (name)
    QUALIFY p.rank = min(p.rank) OVER (PARTITION BY s.conditions)
),
parallelisms AS (
    SELECT conditions, string_agg(split, ' ' ORDER BY position) AS parallelism
    FROM splits
    GROUP BY conditions
),
clients AS (
    SELECT s.conditions, CAST(s.text AS BIGINT) AS clients
    FROM statements s
    JOIN known_concurrency c USING (name)
    WHERE regexp_full_match(s.text, '[1-9][0-9]*')
    QUALIFY c.rank = min(c.rank) OVER (PARTITION BY s.conditions)
),
concurrencies AS (
    SELECT conditions, CAST(product(clients) AS BIGINT) AS concurrency
    FROM clients
    GROUP BY conditions
),
repeated AS (  -- rows that a newer version of a page prints with the same SDK and figures
    SELECT
        result_id, document_id, sdk_version,
        first_value(result_id) OVER versions AS newest, first_value(document_id) OVER versions AS newest_document
    FROM results
    WHERE origin = 'published' AND benchmark IS NULL AND sdk_version IS NOT NULL
    WINDOW versions AS (
        PARTITION BY
            publisher, task, model_printed, variant, dataset_printed, platform, sdk_version, framework, conditions,
            precision_printed, batch_size, input_tokens, output_tokens, throughput, latency_ms,
            latency_median_ms, latency_p99_ms, latency_per_token_ms, ttft_ms, tpot_ms, efficiency,
            power_w, time_to_train_s, time_to_result_s, quality_value
        ORDER BY published_on DESC NULLS LAST, document_id DESC, row_number
    )
),
repetitions AS (
    SELECT result_id, same_as FROM quoted
    UNION ALL
    SELECT result_id, newest FROM repeated WHERE newest_document <> document_id
)
SELECT
    r.result_id,
    coalesce(n.model, e.model, r.model_printed) AS model,
    p.phase,
    CAST(coalesce(
        nullif(regexp_extract(r.variant, '{sequence_length}', 1), ''),
        nullif(regexp_extract(r.conditions, '(?i)\bseq(?:uence|\.) length = (\d+)', 1), '')
    ) AS BIGINT) AS sequence_length,
    l.parallelism,
    t.concurrency,
    CASE
        WHEN regexp_matches(r.variant, '(?i)\bpacked\b') OR d.packed = 'yes' THEN TRUE
        WHEN regexp_matches(r.variant, '{sequence_length}') THEN FALSE
    END AS packed,
    coalesce(d.dataset, r.dataset_printed, e.dataset) AS dataset,
    e.submitter,
    coalesce(r.throughput / r.chip_count, r.chip_throughput) AS throughput_per_chip,
    CASE WHEN r.latency_basis IS NULL OR r.latency_basis = 'per-batch' THEN 1000 * r.batch_size / r.latency_ms END
        AS throughput_implied,
    s.sparsity,
    coalesce(c.name, r.precision_printed) AS precision,
    coalesce(f.errors, 0) AS errors,
    coalesce(f.warnings, 0) AS warnings,
    o.same_as,
    coalesce(f.errors, 0) = 0 AND f.is_suspect IS NOT TRUE AND o.same_as IS NULL AND r.origin <> 'emulated'
        AND r.printed_until IS NULL AND documents.figures_are IS NULL
        AND documents.kind IS DISTINCT FROM 'submission' AND e.usable IS NOT FALSE AS usable
FROM results r
LEFT JOIN entries e USING (result_id)
LEFT JOIN models n ON n.model_printed = r.model_printed AND n.variant IS NOT DISTINCT FROM r.variant
    AND n.platform = r.platform AND n.framework IS NOT DISTINCT FROM r.framework
LEFT JOIN phases p ON p.model_printed = r.model_printed AND p.variant = r.variant AND r.task = 'training'
LEFT JOIN known_dataset d ON d.dataset_printed = coalesce(r.dataset_printed, e.dataset)
LEFT JOIN known_precision c ON c.precision = normalise_name(r.precision_printed)
LEFT JOIN sparse s ON s.conditions = r.conditions
LEFT JOIN parallelisms l ON l.conditions = r.conditions
LEFT JOIN concurrencies t ON t.conditions = r.conditions
LEFT JOIN documents ON documents.document_id = r.document_id
LEFT JOIN flag_counts f USING (result_id)
LEFT JOIN repetitions o USING (result_id)
