-- Mean of the GC200 over the best mean of another device in the claim's table of Peng et al., by format.
WITH means AS (
    SELECT m.*
    FROM claim AS c
    JOIN microbenchmarks AS m
        ON m.document_id = 'independent-peng-ipu-rdu-gpu-2024'
        AND m.operation = CASE WHEN contains(c.claim, 'convolution') THEN 'convolution' ELSE 'GEMM' END
        AND m."precision" = coalesce(c."precision", m."precision")
    WHERE m.metric = 'ratio'
)
SELECT
    i.value / max(o.value) AS value, i."precision" || ', over the ' || arg_max(o.device, o.value) AS baseline,
    printf('%g / %g = %.2f', i.value, max(o.value), i.value / max(o.value)) AS arithmetic,
    ['microbenchmarks:' || i.microbenchmark_id, 'microbenchmarks:' || arg_max(o.microbenchmark_id, o.value)] AS inputs
FROM means AS i
JOIN means AS o ON o."precision" = i."precision" AND o.device <> i.device
WHERE i.device = 'GC200'
GROUP BY i.value, i."precision", i.microbenchmark_id
ORDER BY i."precision"
