-- Slips that no neighbouring row is needed to see: a figure that another row prints for another
-- set-up, tiles counted as chips, a latency that leaves all of the machine idle, the power of an
-- idle machine, and a batch that is that of each chip. Each is doubtful, and its
-- question names the slip. The limits are conventions; no row of the record is beyond one.
WITH printed AS (
    SELECT
        m.run, f.*,
        length(rtrim(ltrim(replace(format('{:.12g}', value), '.', ''), '0'), '0')) AS digits
    FROM ours m
    CROSS JOIN LATERAL (
        VALUES ('throughput', m.throughput), ('latency_ms', m.latency_ms), ('minutes', m.minutes)
    ) f(figure, value)
    WHERE value IS NOT NULL
),
equal AS (
    SELECT
        p.run, p.figure, p.value, r.result_id, r.place, p.digits,
        m.platform = r.platform AS is_same_machine,
        list_filter([
            if(m.type <> r.type,
                format('is it a figure at {} called {}? State precision', r.precision, m.precision),
                NULL),
            if(m.sequence_length <> r.sequence_length,
                format('is it that of sequence length {}?', r.sequence_length), NULL),
            if(m.phase <> r.phase, format('is it that of {}?', r.phase), NULL),
            if(m.packed <> r.packed, 'are the sequences packed? State packed', NULL),
            if(m.task <> r.task, format('is it that of {}?', r.task), NULL),
            if(m.chip <> r.chip, format('is it that of {}?', r.platform), NULL),
            if(m.chip_count <> r.chip_count,
                format('is it that of {} chips?', r.chip_count), NULL),
            if(m.batch_size <> r.batch_size, format(
                'is it that of batch {}, and {} the micro-batch or the batch of one chip?',
                r.batch_size, m.batch_size
            ), NULL)
        ], lambda question: question IS NOT NULL) AS questions
    FROM printed p
    JOIN ours m USING (run)
    JOIN theirs r USING (model)
    WHERE p.value = CASE p.figure
        WHEN 'throughput' THEN r.throughput
        WHEN 'latency_ms' THEN r.latency_ms
        ELSE r.minutes
    END
),
copies AS (
    SELECT
        run, 8 AS position, 'equal figure' AS name, format(
            '{:.12g} is the {} of {} to the last digit; {}', value, replace(figure, '_', ' '),
            result_id, array_to_string(questions, ' Or ')
        ) AS message, value, NULL::DOUBLE AS limit_
    FROM equal
    -- Four digits are equal by chance once in some thousand rows. Three are enough where machine
    -- and set-up are the same but for one thing.
    WHERE digits >= 4 OR digits = 3 AND is_same_machine AND len(questions) <= 1
    -- a row that is alike in all that both state is the figure itself
    QUALIFY min(len(questions)) OVER (PARTITION BY run, figure) > 0
        AND row_number() OVER (PARTITION BY run ORDER BY len(questions), place) = 1
),
largest AS (
    SELECT platform, max(chip_count) AS chip_count
    FROM theirs
    GROUP BY platform
),
tiles AS (
    SELECT
        m.run, 7, 'number of chips', format(
            '{} has {} chips in the record, not {}: is it the number of tiles or of compute units?',
            m.platform, l.chip_count, m.chip_count
        ), m.chip_count, l.chip_count
    FROM ours m
    JOIN largest l USING (platform)
    WHERE m.chip_count > l.chip_count
),
works AS (
    SELECT
        *, peak * chip_count AS bound,
        compute_tflops(
            if(latency_basis = 'per-item', 1, batch_size) * 1000 / latency_ms, gmacs,
            count_passes(task)
        ) / bound AS used
    FROM ours
),
slow AS (
    -- 1/100,000 of the peak: a batch of one on a large GPU in eager mode has about 1/1,000
    SELECT
        run, 9, 'latency ceiling', format(
            'a batch in {:.12g} ms is {} of the peak: is it in microseconds or nanoseconds? State'
            ' latency_ms in milliseconds', latency_ms, format_plain(used, digits := 2)
        ), used, 1e-5
    FROM works
    WHERE used < 1e-5
),
efficiencies AS (
    -- the highest of a usable row of the work, whatever the machine; chips and sources differ by
    -- less than three times
    SELECT m.run, max(coalesce(r.efficiency, r.throughput / r.power_w)) AS highest
    FROM ours m
    JOIN theirs r USING (model, task, item)
    WHERE r.usable
    GROUP BY m.run
),
idle AS (
    SELECT
        m.run, 10, 'idle power', format(
            '{:.12g} W for {:.12g} {}s/s is {} {}s/s/W; the highest of the record is {}: is it the'
            ' power of a machine that is idle?', m.power_w, m.throughput, m.item,
            format_plain(m.throughput / m.power_w, digits := 3), m.item,
            format_plain(e.highest, digits := 3)
        ), m.power_w, m.throughput / e.highest / 3
    FROM ours m
    JOIN efficiencies e USING (run)
    WHERE m.throughput / m.power_w > 3 * e.highest
    UNION ALL
    -- a machine that computes at a twentieth of its peak draws more than a fifth of its rating
    SELECT
        m.run, 10, 'idle power', format(
            '{:.12g} W is {} of the rating of {} × {}, at {} of the peak: is it the power of a'
            ' machine that is idle?', m.power_w,
            format_share(m.power_w / (c.rated_power_w * m.chip_count), 0), m.chip_count, m.chip,
            format_share(m.peak_share, 0)
        ), m.power_w, c.rated_power_w * m.chip_count / 5
    FROM ours m
    JOIN chips c USING (chip)
    WHERE m.peak_share >= 0.05 AND m.power_w < c.rated_power_w * m.chip_count / 5
),
reciprocals AS (
    SELECT
        run, 12, 'latency of an item', format(
            '{:.12g} ms is one over the throughput, and the batch is {}: is it the latency of an'
            ' item? State latency_basis per-item', latency_ms, batch_size
        ), throughput * latency_ms / 1000, 1.0
    FROM ours
    WHERE batch_size > 1 AND latency_basis IS DISTINCT FROM 'per-item'
        AND throughput * latency_ms / 1000 BETWEEN 0.99 AND 1.01
),
exchanged AS (
    SELECT
        m.run, 13, 'exchanged figures', format(
            'throughput {:.12g} and latency {:.12g} ms are nearly the latency and the throughput of'
            ' {}: are they exchanged?', m.throughput, m.latency_ms, any_value(r.result_id)
        ), m.throughput, NULL
    FROM ours m
    JOIN theirs r USING (model, task, platform, batch_size)
    WHERE m.variant IS NOT DISTINCT FROM r.variant AND m.precision IS NOT DISTINCT FROM r.precision
        AND abs(ln(m.throughput / r.latency_ms)) < 0.1
        AND abs(ln(m.latency_ms / r.throughput)) < 0.1
        AND abs(ln(m.throughput / m.latency_ms)) > 0.5
    GROUP BY m.run, m.throughput, m.latency_ms
),
micro_batches AS (
    SELECT
        run, 11, 'batch of each chip', format(
            '{} batches in flight at a latency that is stated to be one batch''s, on {} chips: is'
            ' {} the batch of each chip? State batch_size of the whole machine',
            format_plain(depth), chip_count, batch_size
        ), depth, 1.0
    FROM (SELECT *, throughput * latency_ms / 1000 / batch_size AS depth FROM ours)
    WHERE latency_basis = 'per-batch' AND chip_count > 1
        AND depth BETWEEN 0.9 * chip_count AND 1.1 * chip_count
)
SELECT run, position, name, 'doubtful' AS outcome, message, value, limit_ AS "limit"
FROM (
    FROM copies
    UNION ALL FROM tiles
    UNION ALL FROM slow
    UNION ALL FROM idle
    UNION ALL FROM micro_batches
    UNION ALL FROM reciprocals
    UNION ALL FROM exchanged
)
