-- The chart's two IPU bars over every one-GPU A100 row of the model, all published later.
SELECT
    i.value / a.throughput AS value,
    a.platform || ', ' || a.framework || ', ' || a.precision_printed || ', of ' || a.published_on AS baseline,
    printf('%g / %g = %.2f', i.value, a.throughput, i.value / a.throughput) AS arithmetic,
    ['claims:' || i.claim_id, 'results:' || a.result_id] AS inputs
FROM printed AS i
CROSS JOIN results AS a
WHERE i.claim_id IN ('sdk14-efficientnet-b4-training-m2000-a', 'sdk14-efficientnet-b4-training-m2000-b')
    AND a.document_id = 'nvidia-a100-comparators' AND a.task = 'training' AND a.chip_count = 1
    AND a.model_printed = 'EfficientNet-B4'
ORDER BY a.throughput, a.result_id, i.value, i.claim_id
