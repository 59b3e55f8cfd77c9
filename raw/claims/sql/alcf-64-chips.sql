-- Throughput of ResNet-50 on 64 Bow chips over that on 16, of Argonne.
SELECT
    w.throughput / o.throughput AS value, w.conditions AS baseline,
    printf('%.1f / %.1f = %.2f', w.throughput, o.throughput, w.throughput / o.throughput) AS arithmetic,
    ['results:' || w.result_id, 'results:' || o.result_id] AS inputs
FROM results AS w
JOIN results AS o ON o.document_id = w.document_id AND o.chip_count = 16
WHERE w.document_id = 'independent-alcf-resnet50-scaling' AND w.chip_count = 64
ORDER BY value
