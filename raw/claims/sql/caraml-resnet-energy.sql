-- Power that CARAML's ResNet-50 figures imply, throughput over efficiency, and its range over the batches of each chip.
SELECT
    max(throughput / efficiency) AS value,
    chip || coalesce(', rated ' || rated_chip_power_w::INTEGER || ' W', ', no rating') AS baseline,
    printf('%.0f to %.0f W over %d batches', min(throughput / efficiency), max(throughput / efficiency), count(*)) AS arithmetic,
    list('results:' || result_id ORDER BY batch_size) AS inputs,
    NULL::VARCHAR AS relation
FROM results
LEFT JOIN (SELECT chip, max(rated_chip_power_w) AS rated_chip_power_w FROM platforms WHERE chip IS NOT NULL GROUP BY chip) USING (chip)
WHERE document_id = 'independent-caraml-2024' AND task = 'training' AND model_printed LIKE 'ResNet-50%' AND efficiency IS NOT NULL
GROUP BY chip, rated_chip_power_w
ORDER BY chip
