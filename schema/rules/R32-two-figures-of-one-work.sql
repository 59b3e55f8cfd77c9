-- scope: document
-- Flag a figure that its document prints another time with another value, both for the same work.
SELECT DISTINCT ON (a.result_id)
    a.result_id, 'value' AS column_name,
    grade_gap(a.canonical_value / b.canonical_value) AS severity,
    format('{} {} here, {} {} at {}', a.raw, a.unit, b.raw, b.unit, b.place) AS message
FROM rules.microbenchmark_figures a
JOIN rules.microbenchmark_figures b
    ON b.work = a.work AND b.statistic IS NOT DISTINCT FROM a.statistic
    AND (a.high < b.low OR b.high < a.low)
ORDER BY b.row_number, b.result_id
