-- Throughputs of one work on machines of one chip and different numbers of chips. `rank` is 1 for the fastest row of a
-- number of chips: the points of a curve over the batch size must not be taken for machines.
WITH works AS (
    SELECT
        result_id, place, platform, chip_count, throughput, batch_size, sdk_version,
        min(place) OVER (
            PARTITION BY
                document_id, table_name, task, model_printed, variant, dataset_printed, framework,
                precision_printed, chip
        ) AS work
    FROM rules.published
    WHERE chip_count IS NOT NULL AND throughput IS NOT NULL
)
SELECT
    result_id, place, work, platform, chip_count, throughput, batch_size, sdk_version,
    row_number() OVER (PARTITION BY work, chip_count ORDER BY throughput DESC, place) AS rank
FROM works
