WITH chips AS (
    SELECT
        chip, any_value(peak_fp16_tflops) AS peak_fp16_tflops, any_value(peak_fp32_tflops) AS peak_fp32_tflops,
        any_value(peak_source) AS peak_source
    FROM platforms
    WHERE chip IS NOT NULL
    GROUP BY chip
),
measured AS (
    SELECT
        *,
        CASE
            WHEN operation IN ('matrix product', 'GEMM') AND metric = 'arithmetic throughput'
                AND regexp_matches(precision, '(?i)^(mixed|fp16)') THEN 'matrix product at 16 bits'
            WHEN operation IN ('matrix product', 'GEMM') AND metric = 'arithmetic throughput'
                AND regexp_matches(precision, '(?i)^fp32') THEN 'matrix product at 32 bits'
            WHEN metric = 'bandwidth' AND operation IN ('read local memory', 'STREAM Triad') THEN 'local memory'
            WHEN metric = 'bandwidth' AND operation = 'point-to-point transfer' THEN 'exchange'
            WHEN metric = 'bandwidth' AND operation = 'transfer from host' THEN 'host link'
        END AS component
    FROM microbenchmarks
    WHERE
        chip_count = 1
        AND (statistic IS NULL OR statistic NOT IN ('theoretical', 'upper limit', 'peak per transfer', 'peak per tile'))
),
best AS (
    FROM measured
    WHERE component IS NOT NULL
    QUALIFY row_number() OVER (
        PARTITION BY chip, component, operation, publisher ORDER BY canonical_value DESC, document_id, row_number
    ) = 1
),
limits AS (  -- what a source of microbenchmarks computes from the hardware
    SELECT
        chip, CASE WHEN operation = 'read local memory' THEN 'local memory' END AS component,
        max(canonical_value) AS limit_value,
        min(concat(document_id, ', ', place)) AS limit_source
    FROM microbenchmarks
    WHERE statistic = 'theoretical' AND metric = 'bandwidth' AND operation = 'read local memory'
    GROUP BY ALL
)
SELECT
    b.chip, b.chip_confidence, b.interest, b.component, b.operation, b.publisher, b.precision, b.canonical_value AS measured,
    b.canonical_unit AS unit,
    row_number() OVER (PARTITION BY b.chip, b.component ORDER BY b.canonical_value DESC, b.publisher, b.operation) = 1
        AS is_ceiling,
    CASE b.component
        WHEN 'matrix product at 16 bits' THEN c.peak_fp16_tflops
        WHEN 'matrix product at 32 bits' THEN c.peak_fp32_tflops
        ELSE l.limit_value
    END AS stated,
    measured / stated AS share,
    CASE WHEN b.component LIKE 'matrix product%' THEN c.peak_source ELSE l.limit_source END AS stated_source,
    b.microbenchmark_id NOT IN (SELECT result_id FROM flags WHERE severity = 'error') AS usable,
    b.shape, b.statistic, b.sdk_version, b.conditions, b.place, b.document_id, b.microbenchmark_id
FROM best b
LEFT JOIN chips c ON c.chip = b.chip
LEFT JOIN limits l ON l.chip = b.chip AND l.component = b.component
