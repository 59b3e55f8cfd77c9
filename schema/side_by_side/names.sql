-- The names that share a test with any other, those with the most such tests first.
WITH tests AS (
    SELECT DISTINCT name, measure, test
    FROM tested
    JOIN asked USING (compared)
    WHERE comparable
),
shared AS (
    SELECT name
    FROM tests
    QUALIFY count(*) OVER (PARTITION BY measure, test) > 1
)
SELECT name, count(*) AS tests
FROM shared
GROUP BY name
ORDER BY tests DESC, name
