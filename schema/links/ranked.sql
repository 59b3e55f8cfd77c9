-- The scored entries of each ranking, a round, benchmark and division, without those that repeat the
-- measurement of another; the first path is kept.
SELECT *, concat_ws('/', round, benchmark, division) AS family
FROM scored
WHERE division IS NOT NULL
QUALIFY row_number() OVER (PARTITION BY family, measurement ORDER BY path) = 1
