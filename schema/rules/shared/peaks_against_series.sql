-- Peaks over batches that are not the largest figure that the same document prints for them: what R34 flags.
WITH parted AS (
    SELECT
        *,
        coalesce(statistic = 'peak over batches', FALSE) AS is_peak,
        regexp_extract(shape, '^(.*) batch=(\d+)$', ['base', 'batch']) AS parts
    FROM rules.microbenchmark_figures
), series AS (
    SELECT
        *,
        dense_rank() OVER (
            ORDER BY
                document_id, chip, chip_count, operation, precision_printed, metric,
                CASE WHEN is_peak THEN shape ELSE parts.base END
        ) AS series
    FROM parted
), largest AS (
    SELECT DISTINCT ON (series) *
    FROM series
    WHERE NOT is_peak AND parts.batch <> ''
    ORDER BY canonical_value DESC, row_number, result_id
)
SELECT
    peak.result_id, 'value' AS column_name,
    peak.canonical_value / largest.canonical_value AS ratio,
    format(
        '{} {}; at batch {} it is {} ({})',
        peak.raw, peak.unit, largest.parts.batch, largest.raw, largest.place
    ) AS evidence
FROM series peak
JOIN largest USING (series)
WHERE peak.is_peak AND peak.raw <> largest.raw
    AND peak.canonical_value <> largest.canonical_value
