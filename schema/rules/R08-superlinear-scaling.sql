-- scope: document
-- Flag a throughput per chip that grows by more than 5 % with the number of chips: sharing the work makes no chip faster.
-- Only machines with the same chip are compared, and of each size only its fastest row. SDK and batch may differ and are
-- named in the message.
WITH fastest AS (
    SELECT
        *,
        throughput / chip_count AS per_chip,
        nullif(concat_ws(', ', 'batch ' || batch_size, 'SDK ' || sdk_version), '') AS set_up
    FROM rules.machine_sizes
    WHERE rank = 1
), steps AS (
    SELECT
        result_id, per_chip, coalesce(' (' || set_up || ')', '') AS set_up,
        lag(platform) OVER sizes AS smaller_platform,
        lag(per_chip) OVER sizes AS smaller_per_chip,
        lag(coalesce(' (' || set_up || ')', '')) OVER sizes AS smaller_set_up
    FROM fastest
    WINDOW sizes AS (PARTITION BY work ORDER BY chip_count)
)
SELECT
    result_id, 'throughput' AS column_name, 'warn' AS severity,
    format(
        '{} % of the throughput per chip of {}: {} items/s per chip{}, {} there{}',
        format_rounded(100 * per_chip / smaller_per_chip), smaller_platform,
        format_rounded(per_chip), set_up, format_rounded(smaller_per_chip), smaller_set_up
    ) AS message
FROM steps
WHERE per_chip / smaller_per_chip > 1.05
