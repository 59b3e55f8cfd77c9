-- Whether the figures of a run are possible: Little's law, the peak of the chips, the power rating.
-- What no chip can reach is impossible, and what leaves nearly all of the machine idle is doubtful.
-- Each message asks about the mistake that explains it, where one does.
WITH flights AS (
    SELECT
        *, coalesce(latency_basis = 'per-item', FALSE) AS is_of_item,
        -- there can be time outside the batches, but not nearly all of it
        is_of_item OR coalesce(latency_basis = 'per-batch' OR latency_kind = 'isolated', FALSE)
            AS is_stated,
        if(is_of_item, 1, batch_size) AS batch,
        throughput * latency_ms / 1000 / batch AS depth
    FROM ours
),
repairs AS (
    SELECT
        *,
        list_sort(list_filter([
            {'off': abs(ln(depth * 1000)), 'times': 1000,
                'question': 'is the latency in seconds? State latency_ms in milliseconds'},
            {'off': abs(ln(depth * batch)), 'times': if(batch > 1, batch, NULL),
                'question':
                    'is the throughput in batches per second, or the latency that of an item?'},
            {'off': abs(ln(depth * chip_count)), 'times': if(chip_count > 1, chip_count, NULL),
                'question': 'is the throughput that of one chip?'}
        ], lambda own: depth * own.times BETWEEN 0.475 AND 16))[:2] AS fits
    FROM flights
),
little AS (
    -- Less than one batch in flight is impossible, but for the rounding of printed figures. More
    -- than 16 are twice the most that a row of the record implies (8.04, STC P920).
    SELECT
        run, 1 AS position, 'Little''s law' AS name,
        coalesce(array_to_string(list_transform(
            fits, lambda own: format('; {} times fits: {}', format_plain(own.times), own.question)
        ), ' or '), '') AS hint,
        depth > 16 * if(is_of_item, coalesce(batch_size, 1), 1) AS is_too_deep,
        CASE
            WHEN depth IS NULL THEN 'not checked'
            WHEN is_too_deep THEN 'doubtful'
            WHEN is_stated AND depth < 0.01 THEN 'impossible'
            WHEN is_stated AND depth < 0.1 THEN 'doubtful'
            WHEN is_stated OR depth >= 0.95 THEN 'ok'
            ELSE 'impossible'
        END AS outcome,
        coalesce(
            format(
                '{} {} in flight: {:.12g} × {:.12g} ms{}', format_plain(depth),
                if(is_of_item, 'items', 'batches'), throughput, latency_ms,
                if(is_of_item, '', format(' / batch {}', batch))
            ) || CASE
                WHEN is_too_deep THEN
                    '; more than 16; is the latency in ms, and that of one batch?'
                WHEN is_stated AND depth < 0.1 THEN format(
                    '; the machine would be idle for {} of the time{}',
                    format_share(1 - depth, 3), hint
                )
                WHEN is_stated AND depth < 0.95 THEN
                    '; the throughput counts time outside the batches'
                WHEN outcome = 'ok' THEN ''
                ELSE format(
                    '; a batch takes at least {} ms at this throughput{}{}',
                    format_plain(batch / throughput * 1000, 4),
                    if(batch > 1 AND hint = '',
                        '; is the latency that of an item (latency_basis per-item)?', ''),
                    hint
                )
            END,
            'needs ' || concat_ws(
                ', ', if(throughput IS NULL, 'throughput', NULL),
                if(latency_ms IS NULL, 'latency_ms', NULL),
                if(batch_size IS NULL, 'batch_size', NULL)
            )
        ) AS message,
        depth AS value, CASE WHEN is_too_deep THEN 16 WHEN depth IS NOT NULL THEN 0.95 END AS limit_
    FROM repairs
),
counted AS (  -- the variants of a model whose operations are counted
    SELECT
        model, list(variant ORDER BY variant) FILTER (variant <> '') AS variants,
        string_agg(nullif(regexp_extract(variant, '{sequence_length}', 1), ''), ', ' ORDER BY variant)
            AS lengths
    FROM operations
    GROUP BY model
),
uncounted AS (  -- what is missing of the work of an item
    SELECT
        m.run, coalesce('SL' || m.sequence_length, m.variant, '') AS of_variant,
        format(
            'the operations of {}{}', m.model, if(of_variant = '', '', format(' ({})', of_variant))
        ) AS what,
        CASE
            WHEN m.gmacs IS NOT NULL THEN NULL
            WHEN c.model IS NULL THEN what || ', which are not counted here'
            WHEN m.sparsity > 0 THEN what || ', which are counted for dense weights only'
            WHEN m.packed THEN what || ' in packed sequences, whose lengths are not known'
            WHEN o.variant IS NOT NULL THEN
                what || ' in training, which are counted for inference only'
            WHEN c.lengths <> '' AND m.sequence_length IS NULL THEN
                'the length of a sequence: state sequence_length, counted are ' || c.lengths
            ELSE format(
                '{}, which are counted {} only', what,
                coalesce('for ' || array_to_string(c.variants, ', '), 'without a variant')
            )
        END AS missing
    FROM ours m
    LEFT JOIN counted c USING (model)
    LEFT JOIN operations o ON o.model = m.model
        AND o.variant = coalesce('SL' || m.sequence_length, m.variant, '')
),
rates AS (
    SELECT
        run, 2 AS position, 'peak of the chips' AS name, throughput AS rate,
        if(throughput IS NULL, 'a throughput', NULL) AS missing,
        format('{:.12g} × {} GMAC × {}', throughput, format_plain(gmacs, 4),
            2 * count_passes(task)) AS arithmetic
    FROM ours
    UNION ALL
    -- the work of one batch within its latency: the floor of a latency, whatever is in flight
    SELECT
        run, 3, 'latency floor', batch * 1000 / latency_ms, if(batch IS NULL, 'batch_size', NULL),
        format('batch {} × {} GMAC × {} / {:.12g} ms', batch, format_plain(gmacs, 4),
            2 * count_passes(task), latency_ms)
    FROM flights
    WHERE latency_ms > 0
),
tops AS (
    SELECT
        chip, max(tflops) AS highest, max(tflops) FILTER (type = 'tf32') AS tensor,
        list({'tflops': tflops, 'type': type} ORDER BY tflops, position) AS all_peaks
    FROM peaks
    GROUP BY chip
),
works AS (
    SELECT
        w.run, w.position, w.name, w.arithmetic, m.chip, m.precision, m.type, m.batch_size,
        m.latency_basis, m.chip_count AS chips,
        coalesce(m.platform, m.chip, 'the machine') AS machine,
        coalesce(compute_tflops(w.rate, m.gmacs, count_passes(m.task)), 0) AS work,
        tops.highest * chips AS top, m.peak * chips AS bound, tops.tensor * chips AS tensor,
        tops.all_peaks, k.is_accelerator,
        concat_ws(', ', w.missing, u.missing, if(m.precision IS NULL, 'a precision', NULL),
            if(chips IS NULL, 'the number of chips', NULL)) AS needs,
        coalesce(work > top, FALSE) AS is_above_any,
        CASE
            WHEN m.precision IS NULL AND is_above_any THEN 'above any'
            WHEN needs <> '' THEN 'missing'
            WHEN bound IS NULL AND is_above_any THEN 'above known'
            WHEN bound IS NULL THEN 'unknown'
            WHEN work <= bound THEN 'below'
            ELSE 'above'
        END AS kind,
        if(kind IN ('above any', 'above known'), top, bound) AS limit_
    FROM rates w
    JOIN ours m USING (run)
    JOIN uncounted u USING (run)
    LEFT JOIN tops ON tops.chip = m.chip
    LEFT JOIN chips k ON k.chip = m.chip
),
asked AS (
    SELECT
        *,
        list_filter(all_peaks, lambda own: own.tflops * chips >= work)[1].type AS faster,
        array_to_string(list_filter([
            if(precision IS NULL, NULL, format(
                'is it a figure at {} called {}? State precision {}', upper(faster), precision, faster
            )),
            if(position = 3 AND work <= limit_ * 2000,
                'is the latency in seconds? State latency_ms in milliseconds', NULL),
            if(position = 3 AND batch_size > 1 AND latency_basis IS DISTINCT FROM 'per-item'
                AND work <= limit_ * batch_size,
                'is it the latency of an item? State latency_basis per-item', NULL),
            if(position = 2 AND work <= limit_ * greatest(64, chips),
                'is it the figure of more chips? State chip_count', NULL),
            if(position = 2 AND batch_size > 1 AND work <= limit_ * batch_size,
                'is it multiplied by the batch twice?', NULL),
            if(position = 2 AND work > limit_ * 10, 'is the unit items per second?', NULL)
        ], lambda question: question IS NOT NULL), '; or ') AS questions
    FROM works
),
floors AS (
    SELECT
        run, position, name,
        CASE
            WHEN kind = 'below' THEN 'ok'
            WHEN kind IN ('missing', 'unknown') THEN 'not checked'
            -- frameworks run convolutions of FP32 as TF32 by default
            WHEN kind = 'above' AND type = 'fp32' AND is_accelerator AND work <= tensor
                THEN 'doubtful'
            ELSE 'impossible'
        END AS outcome,
        CASE kind
            WHEN 'missing' THEN 'needs ' || needs
            WHEN 'unknown' THEN
                format('no source gives the peak of {} at {}', machine, precision)
            WHEN 'above any' THEN format(
                '{} TFLOP/s, above {}, the highest peak of {} × {} at any precision',
                format_plain(work, 4), format_plain(top, 4), chips, chip
            )
            WHEN 'above known' THEN format(
                '{} TFLOP/s: above the highest peak of {} × {} at any precision',
                format_plain(work, 4), chips, chip
            )
            ELSE format(
                '{} TFLOP/s: {}, {} of {} ({} × {} at {})', format_plain(work, 4), arithmetic,
                format_share(work / bound, 1), format_plain(bound, 4), chips,
                coalesce(chip, 'chip'), precision
            )
        END || if(outcome IN ('doubtful', 'impossible') AND questions <> '', '; ' || questions, '')
            AS message,
        if(outcome = 'not checked', NULL, work) AS value,
        if(outcome = 'not checked', NULL, limit_) AS limit_
    FROM asked
),
warm_up AS (  -- the first runs compile and load; a tail of 20 times is a convention
    SELECT
        run, 4 AS position, 'warm-up' AS name, latency_max_ms / latency_ms AS value,
        if(value < 20, 'ok', 'doubtful') AS outcome,
        format(
            'the longest latency, {:.12g} ms, is {} times the stated one{}', latency_max_ms,
            format_plain(value), if(value < 20, '',
                '; are the first runs among the timed ones? Leave out the warm-up')
        ) AS message,
        20.0 AS limit_
    FROM ours
    WHERE value IS NOT NULL
),
powers AS (
    SELECT
        m.run, coalesce(m.power_w, m.throughput / m.efficiency) AS power, m.platform, m.chip,
        m.chip_count, m.power_scope, m.rated_power_w AS of_machine, k.rated_power_w AS of_chip,
        of_chip * m.chip_count AS of_chips,
        coalesce(m.power_scope IN ('device', 'board', 'package'), FALSE) AS is_of_device,
        is_of_device OR of_machine IS NULL AND m.power_scope IS NULL AS is_of_chips
    FROM ours m
    LEFT JOIN chips k USING (chip)
),
ratings_of_powers AS (
    -- A whole machine may draw 4 times the rating of its chips: hosts, network and supplies. No row
    -- of the record without an error flag draws less than 1/30 of the rating of one chip.
    SELECT
        *,
        CASE
            WHEN of_machine IS NOT NULL AND NOT (is_of_device AND of_chips IS NOT NULL)
                THEN 'machine'
            WHEN of_chips IS NOT NULL THEN 'chips'
            ELSE 'unknown'
        END AS source,
        if(source = 'machine' OR source = 'chips' AND is_of_chips, 1, 4) AS factor,
        CASE source
            WHEN 'machine' THEN of_machine
            WHEN 'chips' THEN of_chips
            ELSE ratings.highest * coalesce(chip_count, 'inf'::DOUBLE)
        END AS rating,
        CASE source
            WHEN 'machine' THEN coalesce(of_chip, of_machine)
            WHEN 'chips' THEN of_chip
            ELSE ratings.lowest
        END / 30 AS least_w,
        format('no source gives the power rating of {}', coalesce(platform, chip, 'the machine'))
            AS no_rating,
        format_plain(power, 4) || ' W; ' || CASE source
            WHEN 'machine' THEN format('{} is rated {} W', platform, format_plain(of_machine, 4))
            WHEN 'chips' THEN format(
                '{} × {} are rated {} W{}', chip_count, chip, format_plain(of_chips, 4),
                if(is_of_chips, '', format(', and {} power may be 4 times that', power_scope))
            )
            ELSE format(
                '{}; chips are rated {:g} to {:g} W', no_rating, ratings.lowest, ratings.highest
            )
        END AS text
    FROM powers
    CROSS JOIN ratings
),
power_ratings AS (
    SELECT
        run, 5 AS position, 'power rating' AS name,
        CASE
            WHEN power IS NULL THEN 'not checked'
            WHEN power > rating * factor OR power < least_w THEN 'doubtful'
            WHEN source = 'unknown' THEN 'not checked'
            ELSE 'ok'
        END AS outcome,
        CASE
            WHEN power IS NULL THEN 'needs power_w, or throughput and efficiency'
            WHEN outcome = 'not checked' THEN no_rating
            WHEN outcome = 'ok' THEN text
            WHEN power < least_w THEN text || '; is it in kilowatts? State power_w in watts'
            WHEN power > rating * 100 THEN text || '; is it in milliwatts? State power_w in watts'
            ELSE text || '; is it the power of more chips, or of the whole machine?'
        END AS message,
        if(outcome = 'not checked', NULL, power) AS value,
        CASE
            WHEN outcome = 'not checked' THEN NULL
            WHEN power < least_w AND power <= rating * factor THEN least_w
            ELSE rating * factor
        END AS limit_
    FROM ratings_of_powers
),
efficiencies AS (  -- each figure is rounded on its own: 5 %
    SELECT
        run, 6 AS position, 'efficiency' AS name, throughput / power_w / efficiency AS value,
        if(abs(value - 1) > 0.05, 'impossible', 'ok') AS outcome,
        format(
            'throughput / power is {} item/s/W, the stated efficiency {:.12g}',
            format_plain(throughput / power_w, 4), efficiency
        ) AS message,
        1.0 AS limit_
    FROM ours
    WHERE value IS NOT NULL
)
SELECT run, position, name, outcome, message, value, limit_ AS "limit"
FROM (
    SELECT run, position, name, outcome, message, value, limit_ FROM little
    UNION ALL BY NAME FROM floors
    UNION ALL BY NAME FROM warm_up
    UNION ALL BY NAME FROM power_ratings
    UNION ALL BY NAME FROM efficiencies
)
