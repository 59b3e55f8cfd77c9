-- Inside the documents: the same document's latency ratio times the smallest batches of the chart (4 and 1). One batch
-- in flight on each side: throughput is batch over latency.
SELECT
    l.value * b.ipu_batch / b.gpu_batch AS value,
    'the document''s own latency ratio and batches' AS baseline,
    printf('%g × %g / %g = %.2f', l.value, b.ipu_batch, b.gpu_batch, l.value * b.ipu_batch / b.gpu_batch) AS arithmetic
FROM claim AS c
JOIN printed AS l ON l.document_id = c.document_id AND l.model = c.model AND l.metric = 'latency'
CROSS JOIN (
    SELECT
        regexp_extract(batch, '^(\d+) to', 1)::DOUBLE AS ipu_batch,
        regexp_extract(batch, '; (\d+) to', 1)::DOUBLE AS gpu_batch
    FROM printed
    WHERE claim_id = 'sdk14-efficientnet-b0-inference-latency'
) AS b
ORDER BY l.claim_id
