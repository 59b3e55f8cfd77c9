-- Throughput that 70,000 images in the printed time give, beside the printed throughput.
SELECT
    70000 / time_to_result_s AS value,
    chip_count || ' x ' || chip || ', micro-batch ' || micro_batch_size AS baseline,
    printf('70000 / %g s = %.0f; printed %g', time_to_result_s, 70000 / time_to_result_s, throughput) AS arithmetic,
    ['results:' || result_id] AS inputs,
    NULL::VARCHAR AS relation
FROM results
WHERE document_id = 'independent-tamu-aces-2022' AND time_to_result_s IS NOT NULL AND model = 'image compression autoencoder'
ORDER BY chip, chip_count, micro_batch_size
