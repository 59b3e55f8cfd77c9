-- The names that share a test with any other, with the number of such tests.
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
