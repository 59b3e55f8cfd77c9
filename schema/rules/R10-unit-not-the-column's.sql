-- scope: document
-- Flag a throughput whose items are printed in another cell, or nowhere.
-- It is an error if another cell of the row prints a rate such as `frames/s`, since the column's
-- unit then does not hold for this row. It is a warning if no source says what the items are.
WITH stated AS (
    SELECT DISTINCT ON (result_id)
        result_id, column_name, raw_text,
        regexp_extract(raw_text, '\b([A-Za-z]+)\s*/\s*(?:s|secs?|seconds?)\b', 1)
            AS printed_unit
    FROM cells
    JOIN rules.published USING (result_id, document_id)
    WHERE column_name IN (
            'model_printed', 'variant', 'platform', 'sdk_version', 'framework', 'dataset_printed',
            'precision_printed'
        )
        AND value IS NULL AND contains(raw_text, '/') AND printed_unit <> ''
    ORDER BY cell_number
)
SELECT
    result_id, 'throughput' AS column_name, 'error' AS severity,
    format(
        'the {} cell prints a unit, {}: the throughput counts {} per second',
        column_name, raw_text, printed_unit
    ) AS message,
    regexp_replace(lower(printed_unit), 's$', '') AS suggested
FROM stated
JOIN rules.published USING (result_id)
WHERE throughput IS NOT NULL
UNION ALL
SELECT
    result_id, 'throughput', 'warn',
    format(
        'no source says what the {} items per second of {} are',
        format_figure(throughput), model_printed
    ) || coalesce('; ' || m.item_note, ''),
    NULL
FROM rules.published p
ANTI JOIN stated USING (result_id)
LEFT JOIN models m ON m.model = p.model_printed
WHERE throughput IS NOT NULL AND p.item IS NULL
