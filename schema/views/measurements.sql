SELECT *
FROM results
WHERE same_as IS NULL
