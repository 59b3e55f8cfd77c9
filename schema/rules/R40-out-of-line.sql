-- scope: document
-- Flag a figure that is out of line with the smaller and the larger batch of its curve.
-- All in logarithms. Where four curves of the table go from one batch to the next, their median
-- step is expected, within 0.2 (a ratio of 1.22) and 5.9 median deviations (four standard
-- deviations). Odd is the point between two unexpected steps, and the first or last one whose step
-- is off by 0.8 (a ratio of 2.23) where the next step is as expected. A point is also odd that is
-- off the line through the points next to it, by 0.4 (a ratio of 1.49: a curve bends where a
-- machine fills up) and 5.9 median bends, and 1.5 times as much as they are: one that is off by one
-- makes those next to it off by a half. Points printed twice are left out.
WITH placed AS (
    SELECT
        result_id, batch_size, throughput, latency_ms,
        min(place) OVER (PARTITION BY document_id, table_name) AS printed_table,
        min(place) OVER (
            PARTITION BY
                document_id, table_name, task, model_printed, variant, dataset_printed, platform,
                chip, chip_count, sdk_version, framework, precision_printed, conditions
        ) AS curve
    FROM rules.published
    WHERE batch_size IS NOT NULL
), figures AS (
    UNPIVOT placed ON throughput, latency_ms INTO NAME column_name VALUE figure
), points AS (
    SELECT *, ln(figure) AS level, ln(batch_size) AS size FROM figures WHERE figure > 0
), steps AS (
    SELECT
        *,
        lag(batch_size) OVER along AS batch_before,
        lead(batch_size) OVER along AS batch_after,
        level - lag(level) OVER along AS step,
        lag(size) OVER along AS size_before,
        (size - size_before) / (lead(size) OVER along - size_before) AS share,
        level - lag(level) OVER along * (1 - share) - lead(level) OVER along * share AS bend
    FROM (FROM points QUALIFY count(*) OVER (PARTITION BY column_name, curve, batch_size) = 1)
    WINDOW along AS (PARTITION BY column_name, curve ORDER BY batch_size)
), deviations AS (
    SELECT
        *,
        CASE WHEN count(step) OVER same >= 4 THEN step - median(step) OVER same END AS off,
        abs(bend) > greatest(0.4, 5.9 * median(abs(bend)) OVER whole_table) AS bends,
        greatest(lag(abs(bend)) OVER along, lead(abs(bend)) OVER along, 0) AS bend_of_next
    FROM steps
    WINDOW
        same AS (PARTITION BY column_name, printed_table, batch_before, batch_size),
        whole_table AS (PARTITION BY column_name, printed_table),
        along AS (PARTITION BY column_name, curve ORDER BY batch_size)
), odd_steps AS (
    SELECT *, coalesce(abs(off) > greatest(0.2, 5.9 * median(abs(off)) OVER same), FALSE) AS odd
    FROM deviations
    WINDOW same AS (PARTITION BY column_name, printed_table, batch_before, batch_size)
), neighbours AS (
    SELECT
        *,
        lag(odd) OVER along AS odd_before,
        lag(batch_before) OVER along IS NOT NULL AS has_two_before,
        lead(odd) OVER along AS odd_after,
        lead(odd, 2) OVER along AS odd_after_next,
        -lead(off) OVER along AS off_after
    FROM odd_steps
    WINDOW along AS (PARTITION BY column_name, curve ORDER BY batch_size)
), judged AS (
    SELECT
        *,
        CASE
            WHEN odd AND odd_after AND sign(off) = sign(off_after) THEN off
            WHEN batch_before IS NULL AND odd_after AND NOT odd_after_next AND abs(off_after) > 0.8
                THEN off_after
            WHEN batch_after IS NULL AND has_two_before
                AND odd AND NOT odd_before AND abs(off) > 0.8
                THEN off
            WHEN bends AND abs(bend) > 1.5 * bend_of_next THEN bend
        END AS deviation
    FROM neighbours
)
SELECT
    result_id, column_name, 'warn' AS severity,
    format(
        '{} at batch {} is {} times what the other batches let expect; read the figure and its'
        || ' conditions again',
        format_figure(figure), batch_size, format_rounded(exp(deviation))
    ) AS message
FROM judged
WHERE deviation IS NOT NULL
