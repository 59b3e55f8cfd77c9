-- ResNet-50 on four GC200 at batch 32: the README of CARAML over figure 4a of its paper, and each over one GC200.
WITH pair AS (
    SELECT document_id, chip_count, result_id, throughput
    FROM results
    WHERE document_id IN ('independent-caraml-2024', 'independent-caraml-readme') AND model_printed LIKE 'ResNet-50%'
        AND chip = 'GC200' AND batch_size = 32 AND throughput IS NOT NULL
)
SELECT
    r.throughput / p.throughput AS value,
    p.chip_count || ' x GC200 of the paper' AS baseline,
    printf('%g / %g = %.2f', r.throughput, p.throughput, r.throughput / p.throughput) AS arithmetic,
    ['results:' || r.result_id, 'results:' || p.result_id] AS inputs,
    NULL::VARCHAR AS relation
FROM pair AS r
JOIN pair AS p ON p.document_id = 'independent-caraml-2024' AND p.chip_count IN (1, 4)
WHERE r.document_id = 'independent-caraml-readme'
ORDER BY p.chip_count DESC
