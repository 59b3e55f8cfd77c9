-- What no machine can do: a check of the comparison that fails, and an error of a quality rule.
SELECT
    'implausible' AS reason, locate_row(row_number) AS place,
    format('{}: {}', name, message) AS message
FROM checks
JOIN mine USING (run)
WHERE outcome = 'impossible'
UNION ALL
SELECT 'implausible', locate_row(row_number), format('{}: {}', rule, message)
FROM raised
WHERE severity = 'error'
