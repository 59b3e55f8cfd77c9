-- Highest throughput of one GC200 at 320 pixels in half precision over that of one A30, by the number of device iterations.
WITH rows_at_320 AS (
    SELECT result_id, chip, throughput, coalesce(regexp_extract(conditions, '^\d+ device iterations?'), '') AS iterations
    FROM results
    WHERE document_id = 'independent-yolov4-heidelberg' AND variant = '320x320' AND precision_printed = 'half'
        AND throughput IS NOT NULL AND (chip = 'GC200' AND batch_size = 8 OR chip = 'A30' AND batch_size = 32)
),
gpu AS (SELECT max(throughput) AS best, arg_max(result_id, throughput) AS result_id FROM rows_at_320 WHERE chip = 'A30')
SELECT
    i.throughput / gpu.best AS value, i.iterations AS baseline,
    printf('%g / %g = %.2f', i.throughput, gpu.best, i.throughput / gpu.best) AS arithmetic,
    ['results:' || i.result_id, 'results:' || gpu.result_id] AS inputs
FROM rows_at_320 AS i
CROSS JOIN gpu
WHERE i.chip = 'GC200'
ORDER BY value, i.result_id
