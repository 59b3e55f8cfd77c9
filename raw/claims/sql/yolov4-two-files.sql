-- Throughput of one set-up on one GC200 in two files of the repository: where they differ by more than a tenth.
SELECT
    a.throughput / b.throughput AS value, a.variant || ', ' || a.precision_printed || ', batch ' || a.batch_size AS baseline,
    printf('%g / %g = %.2f', a.throughput, b.throughput, a.throughput / b.throughput) AS arithmetic,
    ['results:' || a.result_id, 'results:' || b.result_id] AS inputs
FROM results AS a
JOIN results AS b
    ON b.document_id = a.document_id AND b.chip = a.chip AND b.variant = a.variant AND b.precision_printed = a.precision_printed
    AND b.batch_size = a.batch_size AND a.throughput > 1.1 * b.throughput AND a.conditions <> b.conditions
WHERE a.document_id = 'independent-yolov4-heidelberg' AND a.chip = 'GC200'
    AND contains(a.conditions, '1 device iteration;') AND contains(b.conditions, '1 device iteration;')
ORDER BY value, a.result_id
