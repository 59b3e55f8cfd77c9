-- The power of a run by the rating of its machine or chips, its efficiency by throughput over
-- power, and its longest latency by the stated one. A whole machine may draw 4 times the rating of
-- its chips: hosts, network and supplies; a convention. So are 5 % above a rating, for what a meter
-- is off. No row of the record without an error flag draws less than 1/30 of the rating of one chip.
WITH warm_ups AS (  -- the first runs compile and load; a tail of 20 times is a convention
    SELECT
        run, 4 AS position, 'warm-up' AS name, latency_max_ms / latency_ms AS value,
        20.0 AS limit_, if(value < 20, 'ok', 'doubtful') AS outcome,
        format(
            'the longest latency, {:.12g} ms, is {} times the stated one{}', latency_max_ms,
            format_plain(value), if(outcome = 'ok', '',
                '; are the first runs among the timed ones? Leave out the warm-up')
        ) AS message
    FROM ours
    WHERE value IS NOT NULL
),
efficiencies AS (  -- each figure is rounded on its own
    SELECT
        run, 6 AS position, 'efficiency' AS name, throughput / power_w / efficiency AS value,
        1.0 AS limit_, if(abs(value - 1) > {EFFICIENCY_TOLERANCE}, 'impossible', 'ok') AS outcome,
        format(
            'throughput / power is {} item/s/W, the stated efficiency {:.12g}{}',
            format_plain(throughput / power_w, digits := 4), efficiency,
            if(outcome = 'impossible' AND abs(throughput / power_w * efficiency - 1) < 0.1,
                '; is it in joules per item? State its reciprocal', '')
        ) AS message
    FROM ours
    WHERE value IS NOT NULL
),
powers AS (
    SELECT
        m.*, coalesce(m.power_w, m.throughput / m.efficiency) AS power, c.rated_power_w AS of_chip,
        c.rated_power_w * m.chip_count AS of_chips,
        coalesce(m.power_scope IN ('device', 'board', 'package'), FALSE) AS is_of_chips,
        CASE
            WHEN m.rated_power_w IS NOT NULL AND NOT (is_of_chips AND of_chips IS NOT NULL)
                THEN 'machine'
            WHEN of_chips IS NOT NULL THEN 'chips'
            ELSE 'unknown'
        END AS rated
    FROM ours m
    LEFT JOIN chips c USING (chip)
),
ratings_of_powers AS (
    SELECT
        p.*, format(
            'no source gives the power rating of {}', coalesce(platform, chip, 'the machine')
        ) AS no_rating,
        CASE rated
            WHEN 'machine' THEN rated_power_w
            WHEN 'chips' THEN of_chips
            ELSE highest * coalesce(chip_count, 'inf'::DOUBLE)
        END AS rating,
        if(
            rated = 'unknown' OR rated = 'chips' AND NOT is_of_chips AND power_scope IS NOT NULL,
            4, 1
        ) AS factor,
        if(rated = 'unknown', lowest, coalesce(of_chip, rated_power_w)) / 30 AS least_w,
        CASE rated
            WHEN 'machine' THEN
                format('{} is rated {} W', platform, format_plain(rating, digits := 4))
            WHEN 'chips' THEN format(
                '{} × {} are rated {} W{}', chip_count, chip, format_plain(rating, digits := 4),
                if(factor = 1, '', format(', and {} power may be 4 times that', power_scope))
            )
            ELSE format('{}; chips are rated {:g} to {:g} W', no_rating, lowest, highest)
        END AS words
    FROM powers p
    CROSS JOIN ratings
),
judged AS (
    SELECT
        *, CASE
            WHEN power IS NULL THEN 'missing'
            WHEN power > rating * factor AND power_w IS NULL
                AND throughput * efficiency BETWEEN least_w AND rating * factor THEN 'reciprocal'
            WHEN power > greatest(rating * factor, rating * 100) THEN 'milliwatts'
            WHEN power > rating * factor * 1.05 THEN 'more'
            WHEN power < least_w THEN 'kilowatts'
            WHEN rated = 'unknown' THEN 'unknown'
            ELSE 'ok'
        END AS kind
    FROM ratings_of_powers
),
power_ratings AS (
    SELECT
        run, 5 AS position, 'power rating' AS name,
        CASE
            WHEN kind IN ('missing', 'unknown') THEN 'not checked'
            WHEN kind = 'ok' THEN 'ok'
            ELSE 'doubtful'
        END AS outcome,
        CASE kind
            WHEN 'missing' THEN 'needs power_w, or throughput and efficiency'
            WHEN 'unknown' THEN no_rating
            ELSE format('{} W; {}{}', format_plain(power, digits := 4), words, CASE kind
                WHEN 'kilowatts' THEN '; is it in kilowatts? State power_w in watts'
                WHEN 'reciprocal' THEN
                    '; is the efficiency in joules per item? State its reciprocal'
                WHEN 'milliwatts' THEN '; is it in milliwatts? State power_w in watts'
                WHEN 'more' THEN '; is it the power of more chips, or of the whole machine?'
                ELSE ''
            END)
        END AS message,
        if(outcome = 'not checked', NULL, power) AS value,
        CASE
            WHEN outcome = 'not checked' THEN NULL
            WHEN kind = 'kilowatts' THEN least_w
            ELSE rating * factor
        END AS limit_
    FROM judged
)
SELECT run, position, name, outcome, message, value, limit_ AS "limit"
FROM (
    FROM warm_ups
    UNION ALL BY NAME FROM power_ratings
    UNION ALL BY NAME FROM efficiencies
)
