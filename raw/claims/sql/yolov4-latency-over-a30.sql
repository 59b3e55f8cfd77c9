-- Latency of one A30 over that of one GC200 at the claim's pixels, precision and batch, where one file has both chips' run.
SELECT
    a.latency_ms / i.latency_ms AS value, i.conditions AS baseline,
    printf('%g ms / %g ms = %.2f', a.latency_ms, i.latency_ms, a.latency_ms / i.latency_ms) AS arithmetic,
    ['results:' || i.result_id, 'results:' || a.result_id] AS inputs,
    regexp_extract(i.conditions, 'run of (.*)$', 1) AS source
FROM claim AS c
JOIN results AS i ON i.document_id = 'independent-yolov4-heidelberg' AND i.chip = c.subject
JOIN results AS a
    ON a.document_id = i.document_id AND a.chip = c.baseline AND a.variant = i.variant AND a.precision_printed = i.precision_printed
    AND a.batch_size = i.batch_size AND regexp_extract(a.conditions, 'run of .*$') = regexp_extract(i.conditions, 'run of .*$')
WHERE starts_with(i.variant, regexp_extract(c.claim, '(\d+) pixels', 1) || 'x') AND i.precision_printed = c.precision_printed
    AND i.batch_size::VARCHAR = c.batch
ORDER BY i.result_id
