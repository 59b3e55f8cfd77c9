-- How many results there are, by who measured and how.
SELECT relationship, interest, origin, task, count(*) AS results
FROM results
GROUP BY ALL
ORDER BY ALL
