-- scope: document
-- Flag more FLOP/s than the peak of all the row's chips at its precision. FLOP/s are throughput × multiply-accumulates of one
-- inference × 2, in training also × 3 (forward, and twice as much backward). Only networks with counted operations for the
-- printed variant are checked.
WITH work AS (
    SELECT
        p.*,
        round(o.macs / 1e9, 3) AS gmacs,  -- as `models` has them
        compute_tflops(throughput, gmacs, count_passes(task)) AS tflops,
        peak.tflops * chip_count AS limit_tflops
    FROM rules.published p
    JOIN detail.operation_counts o ON o.model = p.network AND o.variant = coalesce(p.variant, '')
    JOIN rules.peaks peak USING (platform, precision_printed)
)
SELECT
    result_id, 'throughput' AS column_name, 'error' AS severity,
    format(
        '{} TFLOP/s: throughput {} × {} GMAC of {} × 2{}; the peak of {} × {} at {} is {}',
        format_rounded(tflops), format_figure(throughput), format_figure(gmacs), network,
        if(task = 'training', ' × ' || count_passes(task), ''), chip_count,
        coalesce(chip, platform), precision_printed,
        format_figure(limit_tflops)
    ) AS message
FROM work
WHERE tflops > limit_tflops
