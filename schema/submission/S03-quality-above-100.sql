-- A quality above 100 %.
SELECT
    'implausible' AS reason, locate_line(line) AS place,
    format('a quality of {} %', value) AS message
FROM lines
WHERE trim(unit) = '%' AND starts_with(trim(metric), 'quality') AND TRY_CAST(value AS DOUBLE) > 100
