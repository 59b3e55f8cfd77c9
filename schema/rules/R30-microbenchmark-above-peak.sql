-- scope: document
-- Flag an arithmetic throughput above the peak of all the row's chips at its precision.
-- The peak is the datasheet's where the dataset has it, else the theoretical one that the document
-- itself prints.
WITH figures AS (
    SELECT *, coalesce(chip_count, 1) AS chips
    FROM rules.microbenchmark_figures
    JOIN rules.bounds USING (precision_printed)
    WHERE metric = 'arithmetic throughput'
), sheets AS (
    SELECT chip, precision_printed, max(tflops) AS tflops
    FROM rules.peaks
    JOIN platforms USING (platform)
    GROUP BY chip, precision_printed
), printed AS (
    SELECT document_id, chip, bound, max(canonical_value) AS tflops
    FROM figures
    WHERE statistic = 'theoretical'
    GROUP BY document_id, chip, bound
), bounded AS (
    SELECT
        figures.*,
        coalesce(sheets.tflops, printed.tflops) * chips AS peak,
        if(sheets.tflops IS NULL, 'the printed theoretical peak', 'the peak') AS basis
    FROM figures
    LEFT JOIN sheets USING (chip, precision_printed)
    LEFT JOIN printed USING (document_id, chip, bound)
    WHERE statistic IS DISTINCT FROM 'theoretical'
)
SELECT
    result_id, 'value' AS column_name, 'error' AS severity,
    format(
        '{} TFLOP/s; {} of {} × {} at {} is {}',
        format_figure(canonical_value), basis, chips, chip, precision_printed, format_figure(peak)
    ) AS message
FROM bounded
WHERE canonical_value > peak
