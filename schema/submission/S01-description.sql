-- The day of the hand-in, the first of this record or later, and the check digit of an ORCID iD
-- (ISO 7064, MOD 11-2).
WITH checked AS (
    SELECT *, (12 - 2 * list_reduce(
        [digit::INTEGER FOR digit IN string_split(left(replace(who.orcid, '-', ''), 15), '')],
        lambda total, digit: 2 * total + digit
    ) % 11) % 11 AS check_digit
    FROM description
)
SELECT
    'schema' AS reason, 'submission.toml, submitted_on' AS place,
    format('{} is not a day on which it can have been handed in', submitted_on) AS message
FROM description
-- in another time zone it is tomorrow
WHERE submitted_on NOT BETWEEN DATE '2020-01-01' AND current_date + 1
UNION ALL
SELECT 'owner', 'submission.toml, who.orcid', 'is not an ORCID iD: its check digit is wrong'
FROM checked
WHERE right(who.orcid, 1) <> if(check_digit = 10, 'X', check_digit::VARCHAR)
