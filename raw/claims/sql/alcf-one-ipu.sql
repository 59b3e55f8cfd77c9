-- Rate under the heading One IPU over the rate of two IPUs, of Argonne.
SELECT
    one.throughput / two.throughput AS value, one.conditions AS baseline,
    printf('%.1f / %.1f = %.2f', one.throughput, two.throughput, one.throughput / two.throughput) AS arithmetic,
    ['results:' || one.result_id, 'results:' || two.result_id] AS inputs
FROM results AS one
JOIN results AS two ON two.document_id = one.document_id AND two.chip_count = 2
WHERE one.document_id = 'independent-alcf-resnet50-scaling' AND one.chip_count = 1
ORDER BY value
