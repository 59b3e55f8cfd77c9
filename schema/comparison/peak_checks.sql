-- The work that a throughput implies, and that of one batch within its latency, the floor of a
-- latency whatever is in flight: neither is above the peak of all chips. Work above it asks about
-- the mistakes that explain it.
WITH counted AS (  -- the variants of a model whose operations are counted
    SELECT
        model, string_agg(nullif(variant, ''), ', ' ORDER BY variant) AS variants,
        string_agg(
            nullif(regexp_extract(variant, '{sequence_length}', 1), ''), ', ' ORDER BY variant
        ) AS lengths
    FROM operations
    GROUP BY model
),
runs AS (
    SELECT
        -- of training, three times what is counted for inference: of whole networks, all trained
        m.* REPLACE (m.counted_gmacs AS gmacs), count_passes(m.task) AS passes,
        if(m.latency_basis = 'per-item', 1, m.batch_size) AS batch,
        coalesce('SL' || m.sequence_length, nullif(m.variant, '')) AS of_variant,
        format('the operations of {}{}', m.model, coalesce(format(' ({})', of_variant), ''))
            AS what,
        CASE
            WHEN m.counted_gmacs IS NOT NULL THEN NULL
            WHEN c.model IS NULL THEN what || ', which are not counted here'
            WHEN m.sparsity > 0 THEN what || ', which are counted for dense weights only'
            WHEN m.packed THEN what || ' in packed sequences, whose lengths are not known'
            WHEN c.lengths <> '' AND m.sequence_length IS NULL THEN
                'the length of a sequence: state sequence_length, counted are ' || c.lengths
            ELSE format(
                '{}, which are counted {} only', what,
                coalesce('for ' || c.variants, 'without a variant')
            )
        END AS uncounted
    FROM ours m
    LEFT JOIN counted c USING (model)
),
rates AS (
    SELECT
        *, 2 AS position, 'peak of the chips' AS name, throughput / parts AS rate,
        if(throughput IS NULL, 'a throughput', NULL) AS no_rate,
        format(
            '{:.12g}{} × {} GMAC × {}', throughput, if(parts > 1, ' / ' || parts, ''),
            format_plain(gmacs, digits := 4), 2 * passes
        ) AS arithmetic
    FROM runs
    UNION ALL
    SELECT
        *, 3, 'latency floor', batch * 1000 / latency_ms, if(batch IS NULL, 'batch_size', NULL),
        format('batch {} × {} GMAC × {} / {:.12g} ms', batch, format_plain(gmacs, digits := 4),
            2 * passes, latency_ms)
    FROM runs
    WHERE latency_ms > 0
),
tops AS (
    SELECT
        chip, max(tflops) AS highest, arg_max(is_certain, tflops) AS is_certain, max(tflops) FILTER (type = 'tf32') AS tensor,
        min(count_bits(type)) AS fewest_bits,
        list({'tflops': tflops, 'type': type} ORDER BY tflops, position) AS all_peaks
    FROM bounds
    GROUP BY chip
),
works AS (
    SELECT
        r.*, coalesce(compute_tflops(rate, gmacs, passes), 0) AS work,
        if(precision IS NULL, 8, count_bits(type)) AS bits,
        peak * chip_count AS bound, highest * chip_count AS top,
        -- what a source does not state may be faster: of half the bits, twice the peak of 16 bits;
        -- nothing bounds tensor cores by the plain cores of FP32
        CASE
            WHEN fewest_bits <= bits THEN top
            WHEN fewest_bits = 16 THEN top * 16 / bits
        END AS highest_possible,
        is_accelerator AND type = 'fp32' AND work <= tensor * chip_count AS is_tensor, all_peaks,
        if(bound IS NULL, tops.is_certain, is_certain_peak) AS is_certain,
        concat_ws(
            ', ', no_rate, uncounted,
            if(precision IS NULL, 'a precision', NULL),
            if(chip_count IS NULL, 'the number of chips', NULL)
        ) AS missing
    FROM rates r
    LEFT JOIN tops USING (chip)
    LEFT JOIN chips USING (chip)
),
judged AS (
    SELECT
        *, CASE
            WHEN precision IS NULL AND work > highest_possible THEN 'above any'
            WHEN missing <> '' THEN 'missing'
            WHEN bound IS NULL AND work > highest_possible THEN 'above known'
            WHEN bound IS NULL THEN 'no peak'
            WHEN work <= bound THEN 'ok'
            WHEN is_tensor THEN 'tensor'  -- frameworks run convolutions of FP32 as TF32 by default
            ELSE 'above'
        END AS kind,
        coalesce(if(precision IS NULL, top, bound), top) AS limit_,
        -- nobody trains at eight bits of integers
        list_filter(
            all_peaks, lambda own: own.tflops * chip_count >= work
                AND (task = 'inference' OR own.type <> 'int8')
        )[1].type AS faster,
        format_plain(work, digits := 4) AS work_text,
        format('the highest peak of {} × {} at any precision', chip_count, chip) AS top_text
    FROM works
),
asked AS (
    SELECT
        *, concat_ws(
            '; or ',
            if(precision IS NULL, NULL, format(
                'is it a figure at {} called {}? State precision {}', upper(faster), precision,
                faster
            )),
            if(position = 3 AND work <= limit_ * 2000,
                'is the latency in seconds? State latency_ms in milliseconds', NULL),
            -- a rate that follows from the latency of a clock that was read too early
            if(position = 3 OR throughput * latency_ms / 1000 / batch < 2,
                'was the device synchronised before the clock was read?', NULL),
            if(position = 3 AND batch > 1 AND work <= limit_ * batch,
                'is it the latency of an item? State latency_basis per-item', NULL),
            if(task = 'training' AND work / passes <= limit_,
                'is it the inference figure, of forward passes alone?', NULL),
            if(position = 2 AND work <= limit_ * greatest(64, chip_count),
                'is it the figure of more chips? State chip_count', NULL),
            if(position = 2 AND work / batch_size BETWEEN limit_ / 1000 AND limit_,
                'is it multiplied by the batch twice?', NULL),
            -- a slip of a unit leaves 5 % of the peak or more, as most honest runs do
            if(position = 2 AND item <> 'token'
                AND work / sequence_length BETWEEN limit_ / 20 AND limit_, format(
                'is it tokens per second? A sequence has {}', sequence_length
            ), NULL),
            if(position = 2 AND work / 100 BETWEEN limit_ / 20 AND limit_,
                'is the decimal comma lost?', NULL),
            if(position = 2 AND work / 60 BETWEEN limit_ / 20 AND limit_,
                'is it items per minute?', NULL),
            if(position = 2 AND work > limit_ * 10, 'is the unit items per second?', NULL)
        ) AS questions
    FROM judged
)
SELECT
    run, position, name,
    CASE
        WHEN kind = 'ok' THEN 'ok'
        WHEN kind IN ('missing', 'no peak') THEN 'not checked'
        WHEN kind = 'tensor' OR NOT is_certain THEN 'doubtful'
        ELSE 'impossible'
    END AS outcome,
    CASE kind
        WHEN 'missing' THEN 'needs ' || missing
        WHEN 'no peak' THEN format(
            'no source gives the peak of {} at {}',
            coalesce(platform, chip, 'the machine'), precision
        )
        WHEN 'above any' THEN format(
            '{} TFLOP/s, above {}, {}', work_text, format_plain(top, digits := 4), top_text
        )
        WHEN 'above known' THEN format('{} TFLOP/s: above {}', work_text, top_text)
        ELSE format(
            '{} TFLOP/s: {}, {} of {} ({} × {} at {})', work_text, arithmetic,
            format_share(work / bound, 1), format_plain(bound, digits := 4), chip_count,
            coalesce(chip, 'chip'), precision
        )
    END || if(outcome = 'doubtful' AND NOT is_certain, ', by one source alone', '')
        || if(outcome IN ('doubtful', 'impossible') AND questions <> '', '; ' || questions, '')
        AS message,
    if(outcome = 'not checked', NULL, work) AS value,
    if(outcome = 'not checked', NULL, limit_) AS "limit"
FROM asked
