SELECT *
FROM results
WHERE relationship = 'submitted'
