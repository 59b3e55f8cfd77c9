-- scope: document
-- Flag a throughput that does not grow with the chips: less than 1.1 times as much on twice as many or more. Of each number
-- of chips only the fastest row is compared. If it does not grow, all rows of that number are flagged.
WITH fastest AS (
    FROM rules.machine_sizes WHERE rank = 1
), flat AS (
    SELECT
        f.work, f.chip_count, f.throughput AS best,
        fewer.throughput AS fewer_best, fewer.chip_count AS fewer_chips
    FROM fastest f
    JOIN fastest fewer ON fewer.work = f.work AND f.chip_count >= 2 * fewer.chip_count
        AND f.throughput < 1.1 * fewer.throughput
    QUALIFY row_number() OVER (
        PARTITION BY f.work, f.chip_count ORDER BY fewer.throughput DESC, fewer.place
    ) = 1
)
SELECT
    result_id, 'throughput' AS column_name, 'warn' AS severity,
    format(
        '{} items/s at best on {} chips, {} on {}: the curve does not grow with the chips',
        format_figure(CAST(format('{:.4g}', best) AS DOUBLE)), chip_count,
        format_figure(CAST(format('{:.4g}', fewer_best) AS DOUBLE)), fewer_chips
    ) AS message
FROM rules.machine_sizes
JOIN flat USING (work, chip_count)
