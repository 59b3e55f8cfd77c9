-- Each figure of a row with the lowest one at the next smaller batch size of its curve: the rows of one table that differ
-- in the batch size only. Latencies of an item are on no curve. Nor is the depth, batches in flight, of a row that R24
-- flags: after such a row the next one is normal.
WITH points AS (
    SELECT
        result_id, batch_size, throughput,
        min(place) OVER (
            PARTITION BY
                document_id, table_name, task, model_printed, variant, dataset_printed, platform,
                framework, sdk_version, precision_printed, conditions
        ) AS curve,
        CASE WHEN NOT item_latency THEN latency_ms END AS batch_latency,
        CASE
            WHEN NOT item_latency AND result_id NOT IN (SELECT result_id FROM rules.unlike_depths)
                THEN in_flight
        END AS depth
    FROM rules.published
    WHERE batch_size IS NOT NULL
), long AS (
    SELECT curve, batch_size, result_id, 'throughput' AS figure, throughput AS value FROM points
    UNION ALL SELECT curve, batch_size, result_id, 'latency_ms', batch_latency FROM points
    UNION ALL SELECT curve, batch_size, result_id, 'in_flight', depth FROM points
), lowest AS (
    SELECT
        curve, figure, batch_size AS previous_batch, min(value) AS previous,
        lead(batch_size) OVER (PARTITION BY curve, figure ORDER BY batch_size) AS batch_size
    FROM long
    WHERE value IS NOT NULL
    GROUP BY curve, figure, long.batch_size
)
SELECT result_id, figure, value, batch_size, previous, previous_batch
FROM long
JOIN lowest USING (curve, figure, batch_size)
WHERE value IS NOT NULL
