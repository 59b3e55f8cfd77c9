-- C600: each result that its report calls FP32 beside the one of FP16 of the same day, network, variant and batch.
SELECT
    h.throughput / s.throughput AS value,
    s.model_printed || ', batch ' || s.batch_size || ', called FP32' AS baseline,
    printf('%g / %g = %.3f', h.throughput, s.throughput, h.throughput / s.throughput) AS arithmetic,
    ['results:' || s.result_id, 'results:' || h.result_id] AS inputs,
    NULL::VARCHAR AS relation
FROM results AS s
JOIN results AS h USING (document_id, model_printed, batch_size)
WHERE document_id = 'bytemlperf-c600' AND s.precision_printed = 'FP32' AND h.precision_printed = 'FP16'
    AND contains(h.conditions, 'report of 2023-05-24')
ORDER BY s.model_printed, s.batch_size, h.result_id
