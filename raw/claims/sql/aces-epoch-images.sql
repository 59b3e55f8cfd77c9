-- Images of the one epoch that table 3 times: throughput x time. ImageNet has 1,281,167 images to train on.
SELECT
    throughput * t.value AS value,
    'on ' || chip_count || ' IPU, micro-batch ' || micro_batch_size AS baseline,
    printf('%g x %g = %.0f, %.3f of 1281167', throughput, t.value, throughput * t.value, throughput * t.value / 1281167)
        AS arithmetic,
    ['results:' || result_id] AS inputs,
    NULL::VARCHAR AS relation
FROM results
JOIN figures AS t USING (result_id)
WHERE document_id = 'independent-tamu-aces-2022' AND t.metric = 'time_to_result_s' AND model_printed LIKE 'ResNet-50%'
ORDER BY chip_count, micro_batch_size
