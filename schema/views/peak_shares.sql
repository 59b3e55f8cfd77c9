WITH chips AS (
    SELECT
        chip, any_value(peak_fp16_tflops) AS fp16, any_value(peak_fp32_tflops) AS fp32, any_value(peak_tf32_tflops) AS tf32,
        any_value(peak_int8_tops) AS int8, any_value(peak_fp8_tflops) AS fp8
    FROM platforms
    WHERE chip IS NOT NULL
    GROUP BY chip
),
peaks AS (
    SELECT
        chip,
        max(measured) FILTER (component = 'matrix product at 16 bits') AS fp16,
        max(measured) FILTER (component = 'matrix product at 32 bits') AS fp32
    FROM detail.ceilings
    GROUP BY chip
),
counted AS (
    SELECT
        r.*, {by_xla} AS by_xla, o.macs, o.parameters, o.activations, o.counted_from AS operations_source,
        2 * o.macs * CASE WHEN r.task = 'training' THEN 3 ELSE 1 END AS flop_per_item,
        CASE
            WHEN regexp_matches(r.precision, '(?i)^(16\.|mixed|fp16|bf16)') THEN 16
            WHEN regexp_matches(r.precision, '(?i)^(fp32|tf32)') THEN 32
            WHEN regexp_matches(r.precision, '(?i)^(fp8|int8)$') THEN 8
        END AS bits,
        upper(r.precision) AS name,
        CASE
            WHEN r.micro_batch_size IS NOT NULL THEN r.micro_batch_size
            WHEN r.task = 'inference' THEN r.batch_size / r.chip_count
        END AS items
    FROM measurements r
    JOIN detail.operation_counts o ON o.model = r.model AND o.variant = coalesce(r.variant, '')
    WHERE
        r.benchmark IS NULL AND r.printed_until IS NULL AND r.throughput_per_chip IS NOT NULL AND r.chip IS NOT NULL
        AND (r.task = 'inference' OR o.training) AND coalesce(r.packed, FALSE) = FALSE
)
SELECT
    r.origin, r.publisher, r.relationship, r.interest, r.task, r.model, r.variant, r.platform, r.chip, r.chip_count, r.framework,
    r.sdk_version, r.precision, r.batch_size, r.micro_batch_size, r.dataset, r.conditions, r.throughput_per_chip,
    r.flop_per_item / 1000000000 AS gflop_per_item,
    r.throughput_per_chip * r.flop_per_item / 1000000000000 AS achieved_tflops,
    CASE r.bits WHEN 16 THEN m.fp16 WHEN 32 THEN CASE WHEN r.name <> 'TF32' THEN m.fp32 END END AS measured_peak_tflops,
    CASE
        WHEN r.bits = 16 THEN c.fp16 WHEN r.name = 'TF32' THEN c.tf32 WHEN r.bits = 32 THEN c.fp32
        WHEN r.name = 'INT8' THEN c.int8 WHEN r.name = 'FP8' THEN c.fp8
    END AS datasheet_peak_tflops,
    achieved_tflops / measured_peak_tflops AS measured_share,
    achieved_tflops / datasheet_peak_tflops AS datasheet_share,
    2 * r.macs / (r.bits / 8 * (r.parameters / r.items + 2 * r.activations)) AS intensity,
    EXISTS (
        FROM counted o
        WHERE o.document_id = r.document_id AND o.model = r.model AND o.task = r.task AND o.chip = r.chip
            AND o.chip_count = r.chip_count AND o.variant IS NOT DISTINCT FROM r.variant AND o.batch_size = r.batch_size
            AND o.by_xla = r.by_xla AND o.bits <> r.bits
            AND abs(o.throughput / r.throughput - 1) <= 0.01
    ) AS precision_doubtful,
    r.operations_source, r.usable, r.document_id, r.table_name, r.row_number, r.result_id
FROM counted r
LEFT JOIN chips c ON c.chip = r.chip
LEFT JOIN peaks m ON m.chip = r.chip
-- a figure that the host bounds says nothing of the chip
WHERE r.errors = 0 AND r.result_id NOT IN (SELECT result_id FROM flags WHERE rule = 'R48')
