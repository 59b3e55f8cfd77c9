-- What the document's own charts of one IPU-M2000 over one A100 give over a whole DGX A100: the multiple, times the mixed-precision
-- rate of one A100 over that of eight in the same framework, as NVIDIA had published it by the day of the blog, 2020-12-09.
SELECT
    p.value * one.throughput / dgx.throughput AS value,
    dgx.platform || ', ' || dgx.model_printed || ', ' || dgx.framework || ', ' || dgx.precision_printed
        || if(dgx.conditions = 'compiled by XLA', ' + XLA', '') || '; IPU-M2000 as ' || p.figure || ' one A100 in the chart'
        AS baseline,
    printf('%g × %g / %g = %.2f', p.value, one.throughput, dgx.throughput, p.value * one.throughput / dgx.throughput)
        AS arithmetic,
    ['claims:' || p.claim_id, 'results:' || one.result_id, 'results:' || dgx.result_id] AS inputs
FROM printed AS p
JOIN results AS dgx ON p.model_printed = CASE dgx.model_printed WHEN 'ResNeXt101-32x4d' THEN 'ResNeXt101' ELSE dgx.model_printed END
JOIN results AS one
    ON (one.document_id, one.task, one.model_printed, one.framework, one.precision_printed, one.conditions)
        IS NOT DISTINCT FROM
        (dgx.document_id, dgx.task, dgx.model_printed, dgx.framework, dgx.precision_printed, dgx.conditions)
WHERE p.claim_id IN ('sdk14-resnet50-training-throughput', 'sdk14-resnext101-training-throughput')
    AND dgx.document_id = 'nvidia-a100-comparators' AND dgx.task = 'training' AND dgx.precision_printed = 'mixed'
    AND dgx.platform = '8x A100-40GB (DGX A100)' AND one.platform = '1x A100-40GB (DGX A100)'
    AND dgx.published_on <= DATE '2020-12-09' AND one.published_on <= DATE '2020-12-09'
ORDER BY p.claim_id, dgx.framework, dgx.result_id, one.result_id
