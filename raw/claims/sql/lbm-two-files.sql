-- Shortest time of the program for each number of IPUs in the file of smallest parts over the mean in the file of all IPUs.
WITH times AS (
    SELECT
        chip_count, contains(place, 'min-partition-size') AS varied, min(value) AS shortest, avg(value) AS average,
        min_by(microbenchmark_id, value) AS shortest_id, list('microbenchmarks:' || microbenchmark_id ORDER BY place) AS runs
    FROM microbenchmarks
    WHERE document_id = 'independent-lbm-graphcore' AND operation NOT LIKE 'compile%'
        AND (contains(place, 'should-i-use-all-ipus') OR contains(place, 'min-partition-size'))
    GROUP BY ALL
)
SELECT
    v.shortest / a.average AS value, v.chip_count || ' IPUs' AS baseline,
    printf('%g / %g = %.2f', v.shortest, a.average, v.shortest / a.average) AS arithmetic,
    ['microbenchmarks:' || v.shortest_id] || a.runs AS inputs
FROM times AS v
JOIN times AS a USING (chip_count)
WHERE v.varied AND NOT a.varied
ORDER BY chip_count
