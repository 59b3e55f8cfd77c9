SELECT *
FROM results
WHERE relationship IS DISTINCT FROM 'submitted'
