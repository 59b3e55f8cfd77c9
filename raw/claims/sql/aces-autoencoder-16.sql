-- Throughput that 70,000 images in the printed time give, beside the printed throughput.
SELECT
    70000 / t.value AS value,
    chip_count || ' x ' || chip || ', micro-batch ' || micro_batch_size AS baseline,
    printf('70000 / %g s = %.0f; printed %g', t.value, 70000 / t.value, throughput) AS arithmetic,
    ['results:' || result_id] AS inputs,
    NULL::VARCHAR AS relation
FROM results
JOIN figures AS t USING (result_id)
WHERE document_id = 'independent-tamu-aces-2022' AND t.metric = 'time_to_result_s'
    AND model_printed = 'image compression autoencoder'
ORDER BY chip, chip_count, micro_batch_size
