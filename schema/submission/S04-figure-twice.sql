-- A line that states the figure of an earlier one again: it differs in its place alone, or in what
-- its power is of.
SELECT
    'duplicate' AS reason, locate_line(unnest(lines[2:])) AS place,
    format('is the figure of line {} again', lines[1]) AS message
FROM (
    SELECT * EXCLUDE (line, place, power_scope), list(line ORDER BY line) AS lines
    FROM lines
    GROUP BY ALL
)
