-- ResNet-50 training on one and on four GC200: the fastest of each document that has both.
WITH fastest AS (
    SELECT document_id, chip_count, arg_max(result_id, throughput) AS result_id, max(throughput) AS throughput
    FROM results
    WHERE chip = 'GC200' AND task = 'training' AND model_printed LIKE 'ResNet-50%' AND chip_count IN (1, 4)
        AND throughput IS NOT NULL AND document_id IN ('independent-caraml-2024', 'independent-tamu-aces-2022')
    GROUP BY document_id, chip_count
)
SELECT
    four.throughput / one.throughput AS value,
    four.document_id AS baseline,
    printf('%g / %g = %.2f', four.throughput, one.throughput, four.throughput / one.throughput) AS arithmetic,
    ['results:' || one.result_id, 'results:' || four.result_id] AS inputs,
    NULL::VARCHAR AS relation
FROM fastest AS one
JOIN fastest AS four USING (document_id)
WHERE one.chip_count = 1 AND four.chip_count = 4
ORDER BY four.document_id
