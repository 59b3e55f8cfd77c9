-- Inside the documents: the same document's latency ratio times the smallest batches of the chart (4 and 1), and times the
-- batches in flight, which throughput times latency over batch gives. The GPU is taken to have one in flight. For the IPU
-- both readings are shown: one, and those of the page's lowest latency at that batch with each framework that the claim names.
WITH depths AS (
    SELECT '' AS result_id, 1.0 AS depth, 'one batch in flight' AS name, []::VARCHAR[] AS inputs
    UNION ALL
    SELECT
        r.result_id, r.throughput * r.latency_ms / 1000 / r.batch_size,
        printf('%.2f batches in flight as on the page with ', r.throughput * r.latency_ms / 1000 / r.batch_size)
            || r.framework || coalesce(', ' || r.variant, ''),
        ['results:' || r.result_id]
    FROM claim AS c
    JOIN results AS r ON r.model_printed = c.model_printed AND meets_condition(c.framework, '', family(r.framework))
    WHERE r.document_id = 'graphcore-performance-2023-07-04' AND r.table_name = 'pod_inference'
        AND r.platform = c.subject AND r.batch_size = 4
    QUALIFY row_number() OVER (PARTITION BY r.framework ORDER BY r.latency_ms, r.result_id) = 1
)
SELECT
    l.value * b.ipu_batch / b.gpu_batch * d.depth AS value,
    'the document''s own latency ratio and batches, ' || d.name AS baseline,
    printf(
        '%g × %g / %g × %.3g = %.2f', l.value, b.ipu_batch, b.gpu_batch, d.depth,
        l.value * b.ipu_batch / b.gpu_batch * d.depth
    ) AS arithmetic,
    ['claims:' || l.claim_id, 'claims:' || b.claim_id] || d.inputs AS inputs
FROM claim AS c
JOIN printed AS l ON l.document_id = c.document_id AND l.model_printed = c.model_printed AND l.metric = 'latency'
CROSS JOIN (
    SELECT
        claim_id, regexp_extract(batch, '^(\d+) to', 1)::DOUBLE AS ipu_batch,
        regexp_extract(batch, '; (\d+) to', 1)::DOUBLE AS gpu_batch
    FROM printed
    WHERE claim_id = 'sdk14-efficientnet-b0-inference-latency'
) AS b
CROSS JOIN depths AS d
ORDER BY l.claim_id, d.depth, d.result_id
