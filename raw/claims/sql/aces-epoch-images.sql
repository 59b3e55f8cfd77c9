-- Images of the one epoch that table 3 times: throughput x time. ImageNet has 1,281,167 images to train on.
SELECT
    throughput * time_to_result_s AS value,
    'on ' || chip_count || ' IPU, micro-batch ' || micro_batch_size AS baseline,
    printf('%g x %g = %.0f, %.3f of 1281167', throughput, time_to_result_s, throughput * time_to_result_s,
        throughput * time_to_result_s / 1281167) AS arithmetic,
    ['results:' || result_id] AS inputs,
    NULL::VARCHAR AS relation
FROM results
WHERE document_id = 'independent-tamu-aces-2022' AND time_to_result_s IS NOT NULL AND model LIKE 'ResNet-50%'
ORDER BY chip_count, micro_batch_size
