-- scope: document
-- Flag a printed batch that contradicts the sibling rows, if another batch size would fit them. Siblings are the same test on
-- another generation's machine with as many chips, and the other variants in the same set-up. Little's law alone cannot
-- decide which of two machines' rows is wrong. So the row must not fit its own variants while its sibling does not contradict
-- its own. That is an error if such variants exist on either side, and a warning if there are none. Variants alone give a
-- warning. Depths, batches in flight, contradict each other from 1.5 times on, and agree within 15 %.
WITH depths AS (
    SELECT
        result_id, place, variant, platform, family, chip_count, batch_size, in_flight,
        in_flight * batch_size AS items,
        min(place) OVER (
            PARTITION BY document_id, task, model_printed, variant, framework, chip_count
        ) AS test,
        min(place) OVER (
            PARTITION BY
                document_id, table_name, model_printed, platform, framework, sdk_version, conditions
        ) AS set_up
    FROM rules.published
    WHERE in_flight > 0
), variants AS (  -- each is counted once
    SELECT
        set_up, variant,
        median(median(in_flight)) OVER (
            PARTITION BY set_up
            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW
        ) AS usual
    FROM depths
    GROUP BY set_up, variant
), judged AS (
    SELECT
        d.*, v.usual,
        coalesce(is_unlike_depth(in_flight / usual), FALSE) AS is_unlike
    FROM depths d
    JOIN variants v ON v.set_up = d.set_up AND v.variant IS NOT DISTINCT FROM d.variant
), machines AS (
    SELECT
        *,
        -- two generations that print one batch are compared by other rules
        min(family) OVER same_batch <> max(family) OVER same_batch AS is_shared
    FROM judged
    WHERE family IS NOT NULL AND chip_count IS NOT NULL
    WINDOW same_batch AS (PARTITION BY test, batch_size)
), nearest AS (  -- the sibling with the nearest number of items in flight
    SELECT
        m.*,
        there.platform AS other_platform, there.batch_size AS other_batch,
        there.in_flight AS other_depth, there.is_unlike AS is_other_unlike,
        m.usual IS NOT NULL OR there.usual IS NOT NULL AS is_sure
    FROM machines m
    JOIN machines there ON there.test = m.test AND there.family <> m.family
    WHERE NOT m.is_shared AND (m.is_unlike OR m.usual IS NULL)
    QUALIFY row_number() OVER (
        PARTITION BY m.result_id
        ORDER BY
            abs(ln(there.items) - ln(m.items)), there.items > m.items,
            if(there.items > m.items, there.place, -there.place)
    ) = 1
), by_machine AS (
    SELECT
        result_id, if(is_sure, 'error', 'warn') AS severity, other_batch AS fitting_batch,
        format(
            '{} batches in flight at batch {}, {} on {} at batch {}; {} if the batch were {} here too',
            format_rounded(in_flight), batch_size, format_rounded(other_depth), other_platform,
            other_batch, format_rounded(items / other_batch), other_batch
        ) AS message
    FROM nearest
    WHERE is_unlike_depth(in_flight / other_depth)
        AND abs(items / other_batch / other_depth - 1) < 0.15
        AND NOT is_other_unlike
), printed AS (
    SELECT DISTINCT set_up, batch_size FROM depths
), single_fits AS (  -- exactly one of the batches printed in the set-up would fit
    SELECT j.*, p.batch_size AS fitting_batch
    FROM judged j
    JOIN printed p ON p.set_up = j.set_up
        AND p.batch_size > j.items / j.usual / 1.15 AND p.batch_size < j.items / j.usual / 0.85
    WHERE j.is_unlike
    QUALIFY count(*) OVER (PARTITION BY j.result_id) = 1
), by_variants AS (
    SELECT
        result_id, 'warn' AS severity, fitting_batch,
        format(
            '{} batches in flight at batch {}, {} in the other variants on {}; '
            || '{} if the batch were {}, the only one printed there that agrees',
            format_rounded(in_flight), batch_size, format_rounded(usual), platform,
            format_rounded(items / fitting_batch), fitting_batch
        ) AS message
    FROM single_fits f
    WHERE result_id NOT IN (SELECT result_id FROM by_machine)
        AND NOT EXISTS (  -- its variant prints that batch in another row
            FROM depths d
            WHERE d.set_up = f.set_up AND d.variant IS NOT DISTINCT FROM f.variant
                AND d.batch_size = f.fitting_batch
        )
), flagged AS (
    FROM by_machine
    UNION ALL
    FROM by_variants
)
SELECT
    result_id, 'batch_size' AS column_name, severity, message,
    CAST(fitting_batch AS VARCHAR) AS suggested
FROM flagged
