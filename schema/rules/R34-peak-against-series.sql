-- scope: document
-- Flag a peak over batches that is not the largest figure that the same document prints for them. What contradictions say of
-- the peak is in the message.
SELECT
    result_id, column_name,
    CASE c.level WHEN 3 THEN 'error' WHEN 2 THEN 'warn' ELSE grade_gap(ratio) END AS severity,
    concat_ws('; ', evidence, c.entries) AS message
FROM rules.peaks_against_series
LEFT JOIN rules.contradicted_figures c USING (result_id, column_name)
