-- scope: document
-- Flag less power, throughput over efficiency, than 0.1 of the rating of one chip, or of the machine: a convention, since no
-- source says what a chip draws at rest. The least in the record is half of a rating. A unit of efficiency that is mistaken
-- is off by 1000.
WITH rated AS (
    SELECT
        p.*, throughput / efficiency AS power, coalesce(c.rated_w, p.rated_power_w) AS limit_w
    FROM rules.published p
    LEFT JOIN rules.rated_chips c USING (chip)
)
SELECT
    result_id, 'efficiency' AS column_name, 'error' AS severity,
    format(
        '{} W: throughput {} / efficiency {}; {} is rated {} W and does not draw so little at work: '
        || 'read the unit of the efficiency again',
        format_rounded(power), format_figure(throughput), format_figure(efficiency),
        coalesce(chip, platform), format_figure(limit_w)
    ) AS message
FROM rated
WHERE power > 0 AND power < 0.1 * limit_w
