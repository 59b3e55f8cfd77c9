-- Greatest throughput of one A30 at the claim's pixels and precision over that of one GC200, by its device iterations.
WITH best AS (
    SELECT
        r.chip, coalesce(nullif(regexp_extract(r.conditions, '^\d+ device iterations?'), ''), 'no device iterations') AS iterations,
        max(r.throughput) AS throughput, arg_max(r.result_id, r.throughput) AS result_id
    FROM claim AS c
    JOIN results AS r ON r.document_id = 'independent-yolov4-heidelberg'
    WHERE starts_with(r.variant, regexp_extract(c.claim, '(\d+) pixels', 1) || 'x') AND r.precision_printed = c.precision_printed
        AND r.throughput IS NOT NULL
    GROUP BY ALL
)
SELECT
    a.throughput / i.throughput AS value, 'IPU with ' || i.iterations AS baseline,
    printf('%g / %g = %.2f', a.throughput, i.throughput, a.throughput / i.throughput) AS arithmetic,
    ['results:' || a.result_id, 'results:' || i.result_id] AS inputs,
    'the greatest of the IPU with ' || i.iterations AS reading
FROM best AS a
JOIN best AS i ON i.chip = 'GC200'
WHERE a.chip = 'A30'
ORDER BY i.iterations
