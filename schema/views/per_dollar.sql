WITH machines AS (
    SELECT
        platform, family,
        CASE WHEN family IN ('Classic', 'Bow') THEN CAST(ipu_price AS DOUBLE) ELSE CAST(gpu_price AS DOUBLE) END
            AS asked_usd,
        coalesce(asked_usd, list_price_usd) AS price_usd,
        asked_usd IS NULL AND list_price_usd IS NOT NULL AS listed,
        CASE WHEN listed THEN price_source END AS source
    FROM platforms
),
parts AS (  -- a machine of as many quarters as it has of that chip
    SELECT m.platform, f.value * m.chip_count AS price_usd, concat_ws(', ', f.source, f.place) AS source
    FROM detail.facts f
    JOIN platforms whole ON whole.platform = f.subject AND whole.chip_count = 4
    JOIN platforms m ON m.chip = whole.chip
    WHERE f.property = 'price of a quarter' AND f.unit = 'USD'
),
entries AS (
    SELECT e.* REPLACE (r.usable AS usable), r.framework AS framework_name
    FROM mlperf_entries e
    JOIN results r USING (result_id)
    WHERE e.division = 'closed' AND e.minutes IS NOT NULL
),
fastest AS (
    SELECT
        round, benchmark, chip, chip_count, nodes, min(minutes) AS minutes,
        arg_min(concat_ws(' ', submitter, platform), minutes) AS entry
    FROM entries
    GROUP BY ALL
),
pairs AS (
    SELECT
        'mlperf time to train' AS measure, i.model, i.platform AS ipu_platform,
        g.platform AS gpu_platform, '8x A100-80GB (DGX A100)' AS gpu_priced_as,
        i.minutes AS ipu_figure, g.minutes AS gpu_figure, 'min' AS unit, g.minutes / i.minutes AS performance_ratio,
        f.minutes AS gpu_fastest_figure, f.entry AS gpu_fastest_entry,
        i.framework_name AS ipu_framework, g.framework_name AS gpu_framework, i.framework AS ipu_software,
        g.framework AS gpu_software, i.global_batch_size AS ipu_batch_size, g.global_batch_size AS gpu_batch_size,
        CAST(NULL AS VARCHAR) AS ipu_precision, CAST(NULL AS VARCHAR) AS gpu_precision,
        i.usable AND g.usable AS usable,
        i.result_id AS ipu_result_id, g.result_id AS gpu_result_id,
        i.benchmark, i.round, i.division, i.mlperf_id AS ipu_mlperf_id, i.mlperf_id_confidence,
        i.attribution || '; against ' || g.attribution || '; performance per dollar is not an MLPerf metric' AS attribution
    FROM entries i
    JOIN entries g ON g.round = i.round AND g.benchmark = i.benchmark
    JOIN fastest f
        ON f.round = g.round AND f.benchmark = g.benchmark AND f.chip = g.chip
        AND f.chip_count = g.chip_count AND f.nodes = g.nodes
    WHERE i.submitter = 'Graphcore' AND i.chip_count = 16
        AND g.submitter = 'NVIDIA' AND g.chip = 'A100-SXM-80GB' AND g.chip_count = 8 AND g.nodes = 1
    UNION ALL
    SELECT
        'training throughput', i.model, i.platform, g.platform, g.platform, i.throughput, g.throughput,
        i.item || '/s', i.throughput / g.throughput,
        (
            SELECT max(b.throughput) FROM results b
            WHERE b.publisher = 'NVIDIA' AND b.task = 'training' AND b.model = i.model
                AND b.variant IS NOT DISTINCT FROM i.variant AND b.chip LIKE 'A100%' AND b.chip_count = 8
                AND b.precision = 'mixed' AND b.usable
        ),
        NULL, i.framework, g.framework, concat_ws(', ', 'SDK ' || i.sdk_version, 'published ' || i.published_on),
        concat_ws(', ', 'README', 'of ' || g.published_on), i.batch_size, g.batch_size,
        i.precision_printed, g.precision_printed,
        i.usable AND g.usable, i.result_id, g.result_id, NULL, NULL, NULL, NULL, NULL, NULL
    FROM results i
    JOIN results g ON g.model = i.model AND g.variant IS NOT DISTINCT FROM i.variant AND g.item = i.item
    WHERE i.task = 'training' AND i.publisher = 'Graphcore' AND i.platform IN ('IPU-POD16', 'Bow Pod16')
        AND i.activation_bits = 16 AND i.weight_bits = 16 AND i.result_id IN (SELECT result_id FROM latest)
        AND g.task = 'training' AND g.publisher = 'NVIDIA' AND g.platform = '8x A100-80GB (DGX A100)'
        AND g.precision = 'mixed' AND g.result_id IN (SELECT result_id FROM latest)
)
SELECT
    q.measure, q.model, q.ipu_platform, q.gpu_platform, q.ipu_figure, q.gpu_figure, q.unit, q.performance_ratio,
    i.price_usd AS ipu_price_usd, g.price_usd AS gpu_price_usd, i.listed AS ipu_price_listed,
    g.listed AS gpu_price_listed, i.source AS ipu_price_source, g.source AS gpu_price_source,
    q.performance_ratio * g.price_usd / i.price_usd AS per_dollar_ratio,
    q.performance_ratio * g.price_usd AS break_even_ipu_price_usd,
    i.price_usd / q.performance_ratio AS break_even_gpu_price_usd,
    p.price_usd AS ipu_parts_price_usd, p.source AS ipu_parts_price_source,
    q.performance_ratio * g.price_usd / p.price_usd AS parts_per_dollar_ratio,
    q.gpu_fastest_figure, q.gpu_fastest_entry, q.ipu_framework, q.gpu_framework,
    concat_ws(
        '; ',
        CASE
            WHEN q.ipu_framework <> q.gpu_framework THEN 'framework ' || q.ipu_framework || ' / ' || q.gpu_framework
        END,
        CASE
            WHEN q.ipu_precision <> q.gpu_precision THEN 'precision ' || q.ipu_precision || ' / ' || q.gpu_precision
        END,
        CASE
            WHEN q.ipu_batch_size IS DISTINCT FROM q.gpu_batch_size
                THEN 'batch ' || coalesce(CAST(q.ipu_batch_size AS VARCHAR), 'not stated') || ' / '
                    || coalesce(CAST(q.gpu_batch_size AS VARCHAR), 'not stated')
        END,
        'software ' || concat_ws(' / ', q.ipu_software, q.gpu_software)
    ) AS differs,
    q.usable, q.ipu_result_id, q.gpu_result_id, q.benchmark, q.round, q.division, q.ipu_mlperf_id,
    q.mlperf_id_confidence, q.attribution
FROM pairs q
JOIN machines i ON i.platform = q.ipu_platform
JOIN machines g ON g.platform = q.gpu_priced_as
LEFT JOIN parts p ON p.platform = q.ipu_platform
