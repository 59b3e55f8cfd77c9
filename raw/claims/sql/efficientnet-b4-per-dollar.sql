-- Not MLPerf: training throughput per list price, IPU-POD16 over eight A100 80GB. Prices are those of platforms, from
-- this document. A ratio of throughputs and one of minutes to a quality are not to be compared, so no value counts.
SELECT
    i.throughput * dgx.list_price_usd / (a.throughput * pod.list_price_usd) AS value,
    a.platform || ', ' || a.framework || ', ' || a.precision_printed || ', of ' || a.published_on || '; IPU-POD16 '
        || i.variant || ' with ' || i.framework || ', SDK ' || i.sdk_version AS baseline,
    printf(
        '(%g / %.0f USD) / (%g / %.0f USD) = %.2f', i.throughput, pod.list_price_usd, a.throughput, dgx.list_price_usd,
        i.throughput * dgx.list_price_usd / (a.throughput * pod.list_price_usd)
    ) AS arithmetic,
    [
        'results:' || i.result_id, 'results:' || a.result_id, 'platforms:' || pod.platform, 'platforms:' || dgx.platform
    ] AS inputs,
    'throughput, while the 1.6 that it is compared with is of MLPerf minutes' AS shown_only
FROM results AS i
JOIN platforms AS pod ON pod.platform = i.platform
CROSS JOIN results AS a
JOIN platforms AS dgx  -- its chips are SXM ones; the rows do not say the form
    ON replace(dgx.chip, '-SXM', '') = replace(a.chip, '-SXM', '') AND dgx.chip_count = a.chip_count
        AND dgx.list_price_usd IS NOT NULL
WHERE i.document_id = 'graphcore-performance-2023-07-04' AND i.table_name = 'pod_training'
    AND i.platform = 'IPU-POD16' AND i.model_printed = 'EfficientNet-B4'
    AND a.document_id = 'nvidia-a100-comparators' AND a.task = 'training' AND a.model_printed = 'EfficientNet-B4'
    AND a.chip_count = 8
ORDER BY i.framework DESC, a.throughput, a.result_id, i.result_id
