-- Power that the chips of a row cannot draw, and two powers of a row that differ. Rows of the
-- record without an error flag draw 0.55 to 0.99 times the rating of their chips (view
-- `energy_per_item`); none is idle. From √1000 times as much a figure is nearer to the
-- thousandfold: the unit is wrong.
WITH cards AS (  -- rated by a source of the record, in W; a chip that no source rates is like them
    SELECT watts FROM (VALUES {platforms.chips: name, rated_chip_power_w}) AS chips (name, watts)
    UNION ALL
    SELECT rated_power_w / chip_count FROM platforms
),
known AS (SELECT min(watts) AS lowest, max(watts) AS highest FROM cards),
rated AS (
    SELECT
        run, row_number, power_scope, coalesce(m.chip, platform) AS machine, m.chip_count AS chips,
        coalesce(p.rated_power_w / p.chip_count, c.rated_power_w) AS rating,
        coalesce(rating, highest) AS high,
        -- a new chip may draw less than those that are known
        coalesce(rating, if(n.chip IS NULL, NULL, lowest)) AS low,
        high * chips AS most,
        -- Power of chips may be that of one of them. A machine draws the power of all its chips,
        -- but one of many nodes is taken for the machine at times.
        low * if(power_scope IN ('device', 'board', 'package'), 1, coalesce(chips, 1)) AS least
    FROM mine m
    LEFT JOIN platforms p USING (platform)
    LEFT JOIN chips c ON c.chip = m.chip
    LEFT JOIN (SELECT DISTINCT chip FROM platforms) n ON n.chip = m.chip
    CROSS JOIN known
),
beyond AS (
    SELECT
        run, row_number, place, text, watts > sqrt(1000) * most AS is_more,
        coalesce(is_thousandfold(watts / if(is_more, most, least), 1), FALSE) AS is_unit,
        format(
            '{} is far {} than {} × {}{}, can draw: a chip is rated {}{:g} W; is the unit right'
            ' (W, kW or mW; J or mJ)?', text, if(is_more, 'more', 'less'),
            coalesce(chips::VARCHAR, 'the'), machine, coalesce(', of ' || power_scope, ''),
            if(low = high, '', coalesce(format('{:g} to ', low), 'up to ')), high
        ) AS message
    FROM rated
    JOIN powers USING (run)
    WHERE is_more OR watts < low / sqrt(1000) OR watts < least / sqrt(1000) AND is_unit
),
differing AS (
    SELECT
        run, row_number, 5 AS place, greatest(p.watts / q.watts, q.watts / p.watts) AS factor,
        factor >= sqrt(1000) AS is_unit, format(
            '{} and {} differ by a factor of {:.4g}; are the units right? Power of different scopes'
            ' or of other runs belongs in rows of their own, with conditions',
            p.text, q.text, factor
        ) AS message
    FROM rated
    JOIN powers p USING (run)
    JOIN powers q USING (run)
    WHERE p.place < q.place  -- each figure is rounded on its own
        AND factor - 1
            > {EFFICIENCY_TOLERANCE} + pow(10, 1 - p.digits) / 2 + pow(10, 1 - q.digits) / 2
)
SELECT
    if(is_unit, 'unit', 'implausible') AS reason, locate_row(row_number) AS place, message
FROM (FROM beyond UNION ALL BY NAME FROM differing) AS wrong
QUALIFY row_number() OVER (PARTITION BY run ORDER BY wrong.place) = 1
