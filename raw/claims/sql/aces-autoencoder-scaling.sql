-- Throughput of the autoencoder on each number of IPUs over that on one, of Texas A&M's table 4.
SELECT
    n.throughput / o.throughput AS value, n.chip_count || ' IPUs' AS baseline,
    printf('%g / %g = %.2f', n.throughput, o.throughput, n.throughput / o.throughput) AS arithmetic,
    ['results:' || n.result_id, 'results:' || o.result_id] AS inputs
FROM results AS n
JOIN results AS o ON o.document_id = n.document_id AND o.model_printed = n.model_printed AND o.chip = n.chip AND o.chip_count = 1
WHERE n.document_id = 'independent-tamu-aces-2022' AND n.model_printed = 'image compression autoencoder' AND n.chip = 'GC200'
    AND n.chip_count IN (8, 16)
ORDER BY n.chip_count
