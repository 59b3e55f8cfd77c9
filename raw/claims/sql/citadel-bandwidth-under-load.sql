-- Bandwidth of one of 1,216 concurrent transfers in Citadel's summary, table 4.5, over that of its table 4.6, in MB/s.
WITH transfers AS (
    SELECT
        microbenchmark_id, canonical_value * 1000 AS value, regexp_extract(conditions, 'experiment \([a-d]\)') AS experiment,
        contains(place, 'table 4.5,') AS of_summary
    FROM microbenchmarks
    WHERE document_id = 'independent-citadel-2019' AND regexp_matches(conditions, 'experiment \([a-d]\)')
        AND (
            contains(place, 'table 4.5,') AND contains(place, 'under load')
            OR contains(place, 'table 4.6,') AND statistic = 'peak per transfer'
        )
)
SELECT
    s.value / d.value AS value, s.experiment AS baseline,
    printf('%g MB/s / %g MB/s = %.3f', s.value, d.value, s.value / d.value) AS arithmetic,
    ['microbenchmarks:' || s.microbenchmark_id, 'microbenchmarks:' || d.microbenchmark_id] AS inputs
FROM transfers AS s
JOIN transfers AS d USING (experiment)
WHERE s.of_summary AND NOT d.of_summary
ORDER BY experiment
