-- The units that the data dictionary gives to columns of these names.
SELECT column_name, list(DISTINCT unit ORDER BY unit) AS units
FROM columns
WHERE list_contains($names, column_name) AND unit <> ''
GROUP BY column_name
