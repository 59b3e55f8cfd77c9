WITH kinds_of_chip AS (
    SELECT chip, CASE WHEN max(family) IN ({ipu_families}) THEN 'IPU' ELSE 'other' END AS machines
    FROM platforms
    WHERE chip IS NOT NULL
    GROUP BY chip
),
interests AS (  -- what a party is called by its interest
    FROM (VALUES
        ('maker', 'vendor'), ('rival', 'rival'), ('neither', 'independent'), ('both', 'mixed')
    ) AS interests (interest, party)
),
sides AS (
    SELECT
        'throughput' AS measure, r.result_id, r.document_id, publisher, interest, published_on,
        model, task, phase, sequence_length, item, r.chip, chip_count, platform,
        framework, sdk_version, precision,
        coalesce(  -- NVIDIA prints the batch of one GPU
            batch_size, chip_count * TRY_CAST(regexp_extract(c.raw_text, '^(\d+) ?/ ?GPU$', 1) AS BIGINT)
        ) AS batch_size,
        micro_batch_size,
        dataset, packed, regexp_extract(variant, '{input_size}') AS input_size, conditions,
        throughput AS figure, FALSE AS is_time, usable, errors
    FROM measurements r
    LEFT JOIN cells c
        ON c.result_id = r.result_id AND c.document_id = r.document_id AND c.column_name = 'batch_size'
        AND c.raw_text LIKE '%/%GPU'
    WHERE
        origin = 'published' AND benchmark IS NULL
        AND throughput IS NOT NULL AND r.chip IS NOT NULL AND chip_count IS NOT NULL
    UNION ALL BY NAME
    SELECT
        'mlperf time to train' AS measure, concat('MLPerf Training v', e.round, ' ', e.benchmark) AS test,
        result_id, r.document_id, r.submitter AS publisher, r.interest, r.published_on,
        r.model, r.task, r.phase, r.sequence_length, r.chip, r.chip_count, r.platform,
        r.framework, r.sdk_version, r.precision, e.global_batch_size AS batch_size, r.micro_batch_size, r.dataset, r.packed,
        e.minutes AS figure, TRUE AS is_time, r.errors = 0 AS usable, r.errors,  -- each measurement counts once below
        e.nodes, e.host_processor, nullif(regexp_extract(e.chip_printed, '(\d+) ?W\b', 1), '') AS power_limit,
        e.round, e.path
    FROM mlperf_entries e
    JOIN results r USING (result_id)
    WHERE e.minutes IS NOT NULL AND e.division = 'closed' AND r.chip IS NOT NULL
    UNION ALL BY NAME
    SELECT
        'microbenchmark' AS measure,
        concat_ws(', ', operation, regexp_replace(shape, ' ?\bcores=\S+', ''), metric, statistic) AS test,
        microbenchmark_id AS result_id, document_id, m.publisher, interest, d.published_on,
        chip, chip_count, sdk_version, precision, conditions, canonical_value AS figure,
        canonical_unit IN ('s', 'cycle') AS is_time, TRUE AS usable, 0 AS errors
    FROM microbenchmarks m
    JOIN documents d USING (document_id)
    WHERE
        chip_count IS NOT NULL AND statistic IS DISTINCT FROM 'theoretical'
        AND metric IN ('arithmetic throughput', 'bandwidth', 'lattice update rate', 'sample rate', 'time', 'latency')
    QUALIFY row_number() OVER (  -- one figure a run: its rate where it prints one
        PARTITION BY document_id, chip, chip_count, operation, shape, precision, sdk_version, conditions, statistic
        ORDER BY
            metric <> 'arithmetic throughput', metric NOT LIKE '%rate', metric <> 'bandwidth', metric, row_number
    ) = 1
),
classes AS (  -- what two set-ups are compared by
    SELECT
        *,
        regexp_replace(framework, '\d+(,|$)', '\1', 'g') AS family, list_sort(string_split(family, ', ')) AS families,
        try_cast(regexp_extract(sdk_version, '^\d+\.\d+') AS DOUBLE) AS release,
        CASE
            WHEN regexp_matches(precision, '(?i)^(16\.|mixed|fp16|bf16)') THEN '16 bits'
            WHEN regexp_matches(precision, '(?i)^fp32') THEN '32 bits'
            ELSE upper(precision)
        END AS precision_class,
        coalesce(regexp_matches(conditions, '(?i)\b(1st epoch|epoch 1 of|step 0)\b'), FALSE) AS starts_up,
        coalesce(regexp_matches(conditions, '(?i)\bepoch of unstated number\b'), FALSE) AS epoch_is_open,
        {by_xla} AS by_xla,
        coalesce(regexp_matches(conditions, '(?i)\bvertex \w*simple'), FALSE) AS is_naive,
        coalesce(machines, 'other') AS machines
    FROM sides
    JOIN interests USING (interest)
    LEFT JOIN kinds_of_chip USING (chip)
),
pairs AS (
    SELECT
        a, b,
        [
            CASE WHEN NOT list_has_any(a.families, b.families) THEN 'framework' END,
            CASE WHEN a.by_xla <> b.by_xla THEN 'compiler' END,
            CASE WHEN a.nodes <> b.nodes THEN 'number of hosts' END,
            CASE WHEN a.power_limit <> b.power_limit THEN 'power limit' END,
            CASE WHEN a.precision_class <> b.precision_class THEN 'precision' END,
            CASE WHEN greatest(a.batch_size / b.batch_size, b.batch_size / a.batch_size) > {max_batch_factor} THEN 'batch' END,
            CASE
                WHEN greatest(a.micro_batch_size / b.micro_batch_size, b.micro_batch_size / a.micro_batch_size) > {max_batch_factor}
                    THEN 'micro-batch'
            END,
            CASE WHEN a.dataset <> b.dataset THEN 'data' END,
            CASE WHEN a.packed <> b.packed THEN 'packing' END,
            CASE WHEN nullif(a.input_size, '') <> nullif(b.input_size, '') THEN 'input size' END,
            CASE WHEN a.starts_up <> b.starts_up THEN 'start-up included' END,
            CASE WHEN a.is_naive <> b.is_naive THEN 'unoptimised code' END
        ] AS explaining,
        [
            CASE WHEN a.framework <> b.framework AND a.family = b.family THEN 'framework version' END,
            CASE WHEN a.sdk_version <> b.sdk_version THEN 'SDK' END,
            CASE WHEN a.host_processor <> b.host_processor THEN 'host processor' END,
            CASE WHEN a.precision <> b.precision AND a.precision_class = b.precision_class THEN 'precision name' END,
            CASE
                WHEN a.batch_size <> b.batch_size AND b.batch_size / a.batch_size BETWEEN 1 / {max_batch_factor} AND {max_batch_factor}
                    THEN 'batch within a factor of {max_batch_factor}'
            END,
            CASE
                WHEN a.micro_batch_size <> b.micro_batch_size AND b.micro_batch_size / a.micro_batch_size BETWEEN 1 / {max_batch_factor} AND {max_batch_factor}
                    THEN 'micro-batch within a factor of {max_batch_factor}'
            END
        ] AS minor,
        [
            CASE WHEN a.measure = 'throughput' AND (a.framework IS NULL OR b.framework IS NULL) THEN 'framework' END,
            CASE
                WHEN a.families <> b.families AND list_has_any(a.families, b.families) THEN 'which of several frameworks'
            END,
            CASE WHEN a.epoch_is_open <> b.epoch_is_open THEN 'epoch' END,
            CASE WHEN a.sdk_version IS NULL OR b.sdk_version IS NULL THEN 'SDK' END,
            CASE WHEN a.precision IS NULL OR b.precision IS NULL THEN 'precision' END,
            CASE
                WHEN a.measure <> 'microbenchmark' AND (a.batch_size IS NULL OR b.batch_size IS NULL)
                    AND (a.micro_batch_size IS NULL OR b.micro_batch_size IS NULL) THEN 'batch'
            END,
            CASE WHEN a.measure = 'throughput' AND (a.dataset IS NULL OR b.dataset IS NULL) THEN 'data' END
        ] AS unstated
    FROM classes a
    JOIN classes b
        ON b.measure = a.measure AND b.test IS NOT DISTINCT FROM a.test AND b.model IS NOT DISTINCT FROM a.model
        AND b.task IS NOT DISTINCT FROM a.task AND b.phase IS NOT DISTINCT FROM a.phase
        AND b.sequence_length IS NOT DISTINCT FROM a.sequence_length AND b.item IS NOT DISTINCT FROM a.item
        AND b.chip = a.chip AND b.chip_count = a.chip_count AND b.publisher <> a.publisher
        AND (a.measure <> 'microbenchmark' OR b.precision IS NOT DISTINCT FROM a.precision)
    WHERE  -- the maker first, else the older; `mlperf_pairs` has two official entries of others on other chips
        (a.interest = 'maker' AND b.interest <> 'maker')
        OR (a.interest <> 'maker' AND b.interest <> 'maker'
            AND (a.measure <> 'mlperf time to train' OR a.machines = 'IPU')
            AND (coalesce(a.published_on, DATE '9999-12-31'), a.document_id)
                < (coalesce(b.published_on, DATE '9999-12-31'), b.document_id))
),
ordered AS (  -- no figure has a say in which set-ups are close; of equally close ones the largest batch stands for all
    SELECT
        *,
        (
            list_count(explaining), list_count(unstated), list_count(minor),
            coalesce(abs(ln(a.batch_size / b.batch_size)), 0)
                + coalesce(abs(ln(a.micro_batch_size / b.micro_batch_size)), 0),
            0 - coalesce(a.batch_size, 0) - coalesce(b.batch_size, 0),
            0 - coalesce(a.micro_batch_size, 0) - coalesce(b.micro_batch_size, 0),
            coalesce(abs(a.release - b.release), 0)
        ) AS set_up_distance,
        rank() OVER (PARTITION BY a.result_id, b.publisher ORDER BY set_up_distance) AS rank_for_first,
        rank() OVER (PARTITION BY b.result_id, a.publisher ORDER BY set_up_distance) AS rank_for_second
    FROM pairs
),
closest AS (  -- each row with the closest row of the other party
    FROM ordered WHERE least(rank_for_first, rank_for_second) = 1
),
spread AS (  -- what a party prints for one work in one framework
    SELECT
        publisher, measure, model, task, phase, sequence_length, chip, chip_count, family,
        count(DISTINCT precision_class) AS precisions, count(DISTINCT batch_size) AS batches
    FROM classes
    GROUP BY ALL
),
vendor_parts AS (  -- what part the maker had in the measurements of a document, or of a submitter in a round
    SELECT subject, list(text_value) FILTER (text_value <> 'none stated') AS parts, list(fact_id) AS fact_ids
    FROM detail.facts
    WHERE property = 'part of the vendor'
    GROUP BY subject
),
judged AS (
    SELECT
        c.*,
        list_sort(list_distinct(list_concat(p.parts, q.parts))) AS parts,
        list_sort(list_concat(p.fact_ids, q.fact_ids)) AS part_facts,
        CASE
            WHEN list_count(explaining) > 0 THEN 'the set-up explains it'
            WHEN a.errors + b.errors > 0 THEN 'a row has an error flag'
            WHEN list_contains(unstated, 'which of several frameworks')
                THEN 'a party lists several frameworks and not which of them ran'
            WHEN EXISTS (
                FROM detail.mlperf_shared_logs l
                WHERE l.round = a.round AND l.other_round = b.round
                    AND (l.path, l.other_path) IN ((a.path, b.path), (b.path, a.path))
            ) THEN 'both entries have a log in common'
            WHEN list_contains(unstated, 'precision') AND greatest(s.precisions, t.precisions) > 1
                THEN 'precision is not stated, and the other party prints several'
            WHEN list_contains(unstated, 'batch') AND greatest(s.batches, t.batches) > 1
                THEN 'batch is not stated, and the other party prints several'
            WHEN greatest(rank_for_first, rank_for_second) > 1 THEN 'another row of one party is closer'
            WHEN row_number() OVER (
                PARTITION BY a.publisher, b.publisher, a.measure, a.test, a.model, a.task, a.chip, a.chip_count, a.figure, b.figure
                ORDER BY list_count(explaining), set_up_distance, a.result_id, b.result_id
            ) > 1 THEN 'both print the figure at a second place'
        END AS reason
    FROM closest c
    LEFT JOIN spread s ON s.publisher = a.publisher AND s.measure = a.measure AND s.model = a.model
        AND s.task = a.task AND s.phase IS NOT DISTINCT FROM a.phase
        AND s.sequence_length IS NOT DISTINCT FROM a.sequence_length AND s.chip = a.chip AND s.chip_count = a.chip_count
        AND s.family IS NOT DISTINCT FROM a.family
    LEFT JOIN spread t ON t.publisher = b.publisher AND t.measure = b.measure AND t.model = b.model
        AND t.task = b.task AND t.phase IS NOT DISTINCT FROM b.phase
        AND t.sequence_length IS NOT DISTINCT FROM b.sequence_length AND t.chip = b.chip AND t.chip_count = b.chip_count
        AND t.family IS NOT DISTINCT FROM b.family
    LEFT JOIN vendor_parts p
        ON a.machines = 'IPU' AND a.interest <> 'maker'
        AND p.subject IN (a.document_id, concat(a.document_id, ': ', a.publisher))
    LEFT JOIN vendor_parts q
        ON a.machines = 'IPU' AND q.subject IN (b.document_id, concat(b.document_id, ': ', b.publisher))
)
SELECT
    replace(concat(a.party, ' and ', b.party), 'independent and independent', 'two independent') AS parties,
    a.machines,
    a.measure, a.model, nullif(concat_ws(', ', a.model, a.phase, a.sequence_length || ' tokens'), '') AS work,
    a.task, a.sequence_length, a.item, a.test, a.chip, a.chip_count,
    a.publisher AS first_publisher, b.publisher AS second_publisher,
    a.figure AS first_figure, b.figure AS second_figure,
    CASE WHEN a.is_time THEN a.figure / b.figure ELSE b.figure / a.figure END AS ratio,
    reason IS NULL AS counts,
    CASE
        WHEN list_count(explaining) > 0 THEN 'explained'
        WHEN list_count(unstated) + list_count(minor) = 0 THEN 'equal'
        WHEN list_count(unstated) = 0 THEN 'close'
        ELSE 'close as far as stated'
    END AS match,
    reason,
    CASE
        WHEN len(parts) > 0 THEN list_aggregate(parts, 'string_agg', ', ')
        WHEN len(part_facts) > 0 THEN 'none stated'
    END AS vendor_part,
    list_aggregate(part_facts, 'string_agg', ', ') AS vendor_part_facts,
    list_aggregate(list_concat(explaining, minor), 'string_agg', ', ') AS differs,
    list_aggregate(unstated, 'string_agg', ', ') AS unstated,
    a.framework AS first_framework, b.framework AS second_framework,
    a.sdk_version AS first_sdk_version, b.sdk_version AS second_sdk_version,
    a.precision AS first_precision, b.precision AS second_precision,
    a.batch_size AS first_batch_size, b.batch_size AS second_batch_size,
    a.micro_batch_size AS first_micro_batch_size, b.micro_batch_size AS second_micro_batch_size,
    a.dataset AS first_dataset, b.dataset AS second_dataset,
    a.conditions AS first_conditions, b.conditions AS second_conditions,
    a.path AS first_path, b.path AS second_path,
    a.usable AND b.usable AS usable,
    a.document_id AS first_document_id, b.document_id AS second_document_id,
    a.result_id AS first_result_id, b.result_id AS second_result_id
FROM judged
