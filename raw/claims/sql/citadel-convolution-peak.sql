-- Layers whose highest throughput over the batches, tables 5.4 and 5.5 of Citadel, is above the peak of its table 5.3.
WITH peaks AS (
    SELECT microbenchmark_id, chip, shape, value
    FROM microbenchmarks
    WHERE document_id = 'independent-citadel-2019' AND contains(place, 'table 5.3,') AND metric = 'arithmetic throughput'
),
batches AS (
    SELECT chip, regexp_replace(shape, ' batch=\d+', '') AS shape, max(value) AS highest, arg_max(microbenchmark_id, value) AS id
    FROM microbenchmarks
    WHERE document_id = 'independent-citadel-2019' AND regexp_matches(place, 'table 5\.[45],')
    GROUP BY ALL
)
SELECT
    count(*) FILTER (b.highest > p.value)::DOUBLE AS value, p.chip || ', of ' || count(*) || ' layers' AS baseline,
    printf('%d layers above the peak, by up to %.0f %%', count(*) FILTER (b.highest > p.value), 100 * (max(b.highest / p.value) - 1))
        AS arithmetic,
    list_concat(
        list('microbenchmarks:' || p.microbenchmark_id ORDER BY p.microbenchmark_id),
        list('microbenchmarks:' || b.id ORDER BY b.id)
    ) AS inputs
FROM peaks AS p
JOIN batches AS b USING (chip, shape)
GROUP BY p.chip
ORDER BY p.chip
