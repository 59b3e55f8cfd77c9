-- Mean of the GC200 over the best mean of another device in the claim's table of Peng et al., by format.
WITH means AS (
    SELECT m.*
    FROM claim AS c
    JOIN microbenchmarks AS m
        ON m.document_id = 'independent-peng-ipu-rdu-gpu-2024'
        AND m.operation = CASE WHEN contains(c.claim, 'convolution') THEN 'convolution' ELSE 'GEMM' END
        AND m.precision_printed = coalesce(c.precision_printed, m.precision_printed)
    WHERE m.metric = 'ratio'
)
SELECT
    i.value / max(o.value) AS value, i.precision_printed || ', over the ' || arg_max(o.chip, o.value) AS baseline,
    printf('%g / %g = %.2f', i.value, max(o.value), i.value / max(o.value)) AS arithmetic,
    ['microbenchmarks:' || i.microbenchmark_id, 'microbenchmarks:' || arg_max(o.microbenchmark_id, o.value)] AS inputs
FROM means AS i
JOIN means AS o ON o.precision_printed = i.precision_printed AND o.chip <> i.chip
WHERE i.chip = 'GC200'
GROUP BY i.value, i.precision_printed, i.microbenchmark_id
ORDER BY i.precision_printed
