-- scope: document
-- Flag a throughput that stays the same while the batch grows, with the chips far below their rated power: something else
-- than the chips bounds it, such as the host that feeds them.
-- It stays if the batch grows at least four times over three points or more and the highest throughput is at most 1.25 times
-- the lowest. Far below is less than a third of the rating: rows of the record without an error draw 0.55 to 0.99 of it.
WITH powers AS (
    SELECT result_id, max(value) AS power_w
    FROM figures
    WHERE metric = 'power_w' AND scope IN ('device', 'board', 'package')
    GROUP BY result_id
), points AS (
    SELECT r.*, p.power_w, p.power_w / (c.rated_w * r.chip_count) AS share
    FROM results r
    JOIN powers p USING (result_id)
    JOIN rules.rated_chips c USING (chip)
    WHERE r.origin IN ('published', 'measured') AND r.throughput > 0 AND r.batch_size IS NOT NULL
), judged AS (
    SELECT
        *,
        count(*) OVER curve AS points,
        min(batch_size) OVER curve AS smallest,
        max(batch_size) OVER curve AS largest,
        min(throughput) OVER curve AS lowest,
        max(throughput) OVER curve AS highest,
        max(share) OVER curve AS highest_share
    FROM points
    WINDOW curve AS (
        PARTITION BY
            document_id, table_name, task, model_printed, variant, dataset_printed, platform,
            framework, sdk_version, precision_printed, conditions
    )
)
SELECT
    result_id, 'throughput' AS column_name, 'warn' AS severity,
    format(
        'throughput is {} to {} from batch {} to {}, at no more than {:.0f} % of the rated power: '
        'something else than the chip bounds it',
        format_rounded(lowest), format_rounded(highest), smallest, largest, 100 * highest_share
    ) AS message
FROM judged
WHERE points >= 3 AND largest >= 4 * smallest
    AND highest <= 1.25 * lowest AND highest_share < 1 / 3
