-- The two names that are compared, and those that share a test with the first, the most tests
-- first.
WITH first_name AS (
    SELECT
        compared, model, b,
        coalesce(a, (SELECT name FROM names ORDER BY tests DESC, name LIMIT 1)) AS a
    FROM asked
),
partners AS (
    SELECT other.name, count(DISTINCT (other.measure, other.test)) AS tests
    FROM first_name f
    JOIN tested own ON own.compared = f.compared AND own.name = f.a AND own.comparable
    JOIN tested other
        ON other.compared = f.compared AND other.measure = own.measure AND other.test = own.test
        AND other.name <> f.a AND other.comparable
    GROUP BY other.name
),
listed AS (SELECT list(partners ORDER BY tests DESC, name) AS partners FROM partners)
SELECT f.compared, f.a, coalesce(f.b, l.partners[1].name) AS b, f.model, l.partners
FROM first_name f, listed l
