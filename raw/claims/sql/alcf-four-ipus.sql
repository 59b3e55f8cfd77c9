-- Rate of ResNet-50 on four Bow chips in 2023 over that of 2022, of Argonne.
SELECT
    new.throughput / old.throughput AS value, new.conditions AS baseline,
    printf('%.1f / %.1f = %.2f', new.throughput, old.throughput, new.throughput / old.throughput) AS arithmetic,
    ['results:' || new.result_id, 'results:' || old.result_id] AS inputs
FROM results AS new
JOIN results AS old ON old.model_printed = new.model_printed AND old.chip_count = new.chip_count
WHERE new.document_id = 'independent-alcf-guide' AND old.document_id = 'independent-alcf-resnet50-scaling'
ORDER BY value
