-- Rate of ResNet-50 on a number of Bow chips over that on half as many, where it is more than twice that, of Argonne.
SELECT
    w.throughput / o.throughput AS value, w.chip_count || ' over ' || o.chip_count || ' IPUs' AS baseline,
    printf('%.1f / %.1f = %.3f', w.throughput, o.throughput, w.throughput / o.throughput) AS arithmetic,
    ['results:' || w.result_id, 'results:' || o.result_id] AS inputs
FROM results AS w
JOIN results AS o ON o.document_id = w.document_id AND o.chip_count * 2 = w.chip_count AND o.chip_count > 1
    AND w.throughput > 2 * o.throughput
WHERE w.document_id = 'independent-alcf-resnet50-scaling'
ORDER BY w.chip_count
