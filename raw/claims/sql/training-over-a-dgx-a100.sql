-- Best IPU-M2000 training row of a model over each mixed-precision row, published by the day of the blog, 2020-12-09, of a
-- whole DGX A100 and of one A100. The claim names the whole machine; the other is what its charts compare with, and shown.
SELECT
    i.throughput / a.throughput AS value,
    a.platform || ', ' || a.model_printed || ', ' || a.framework || ', ' || a.precision_printed
        || if(a.conditions = 'compiled by XLA', ' + XLA', '') || '; IPU-M2000 with ' || i.framework || ', SDK '
        || i.sdk_version AS baseline,
    printf('%g / %g = %.2f', i.throughput, a.throughput, i.throughput / a.throughput) AS arithmetic,
    ['results:' || i.result_id, 'results:' || a.result_id] AS inputs,
    CASE WHEN a.chip_count < 8 THEN 'one A100; the claim names a DGX A100, which has eight' END AS shown_only
FROM results AS i
JOIN results AS a ON i.model_printed = CASE a.model_printed WHEN 'ResNeXt101-32x4d' THEN 'ResNeXt101' ELSE a.model_printed END
WHERE i.document_id = 'graphcore-performance-2023-07-04' AND i.table_name = 'pod_training'
    AND i.platform = 'IPU-M2000'
    AND a.document_id = 'nvidia-a100-comparators' AND a.task = 'training'
    AND a.platform IN ('8x A100-40GB (DGX A100)', '1x A100-40GB (DGX A100)') AND a.precision_printed = 'mixed'
    AND a.published_on <= DATE '2020-12-09'
QUALIFY row_number() OVER (PARTITION BY a.result_id ORDER BY i.throughput DESC, i.result_id) = 1
ORDER BY a.chip_count DESC, a.model_printed, a.framework DESC, a.result_id
