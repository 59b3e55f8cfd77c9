-- Each row with the same row on the previous generation, whose columns end in `_before`. The dataset must agree, since
-- another dataset is another test. The SDK need not, since a generation comes with its own. Unknown batches and chip
-- counts match nothing. Of several rows of the previous generation the fastest counts.
WITH ranked AS (
    SELECT
        result_id, place, family, platform, batch_size, throughput, latency_ms,
        list_position(['Mk1', 'Classic', 'Bow'], family) AS generation,
        min(place) OVER (
            PARTITION BY
                document_id, task, model_printed, variant, dataset_printed, framework, batch_size,
                precision_printed, chip_count
        ) AS same_row
    FROM rules.published
    WHERE family IN ('Mk1', 'Classic', 'Bow') AND batch_size IS NOT NULL AND chip_count IS NOT NULL
), fastest AS (
    FROM ranked
    QUALIFY row_number() OVER (
        PARTITION BY same_row, generation ORDER BY throughput DESC NULLS LAST, place
    ) = 1
)
SELECT
    r.result_id, r.family, r.platform, r.batch_size, r.throughput, r.latency_ms,
    b.platform AS platform_before, b.throughput AS throughput_before, b.latency_ms AS latency_before
FROM ranked r
JOIN fastest b ON b.same_row = r.same_row AND b.generation = r.generation - 1
