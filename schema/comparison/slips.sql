-- Slips that no neighbouring row is needed to see: a figure that another row prints for another
-- set-up, tiles counted as chips, a latency that leaves all of the machine idle, a power that a
-- machine has when it rests, and a batch that is that of each chip. Each is doubtful, and its
-- question names the slip. The limits are conventions; no row of the record is beyond one.
WITH printed AS (  -- a figure of four digits or more is equal by chance once in some thousand rows
    SELECT m.run, f.*
    FROM ours m
    CROSS JOIN LATERAL (
        VALUES ('throughput', m.throughput), ('latency_ms', m.latency_ms), ('minutes', m.minutes)
    ) f(figure, value)
    WHERE length(rtrim(ltrim(replace(format('{:.12g}', value), '.', ''), '0'), '0')) >= 4
),
equal AS (
    SELECT
        p.run, p.figure, p.value, r.result_id, r.place,
        list_filter([
            if(m.type <> r.type, differ('precision', m.precision, r.precision), NULL),
            if(m.sequence_length <> r.sequence_length,
                differ('sequence length', m.sequence_length, r.sequence_length), NULL),
            if(m.chip_count <> r.chip_count, differ('chips', m.chip_count, r.chip_count), NULL),
            if(m.batch_size <> r.batch_size, differ('batch', m.batch_size, r.batch_size), NULL)
        ], lambda difference: difference IS NOT NULL) AS different
    FROM printed p
    JOIN ours m USING (run)
    JOIN theirs r USING (model, task)
    WHERE p.value = CASE p.figure
        WHEN 'throughput' THEN r.throughput
        WHEN 'latency_ms' THEN r.latency_ms
        ELSE r.minutes
    END
),
copies AS (
    SELECT
        run, 8 AS position, 'equal figure' AS name, format(
            '{:.12g} is the {} of {} to the last digit, of another set-up ({}); is it yours?',
            value, replace(figure, '_', ' '), result_id, array_to_string(different, ', ')
        ) AS message, value, NULL::DOUBLE AS limit_
    FROM equal
    -- a row that is alike in all that both state is the figure itself
    QUALIFY min(len(different)) OVER (PARTITION BY run, figure) > 0
        AND row_number() OVER (PARTITION BY run ORDER BY len(different), place) = 1
),
tiles AS (
    SELECT
        run, 7, 'number of chips', format(
            '{} is {} × {}: is it the number of tiles?', chip_count, chip_count // per_chip,
            per_chip
        ), chip_count, NULL
    FROM ours
    JOIN (SELECT unnest([1216, 1472]) AS per_chip) ON chip_count % per_chip = 0
    WHERE family IN ({ipu_families}) OR family IS NULL
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
idle AS (
    -- a machine that computes at a twentieth of its peak draws more than a fifth of its rating
    SELECT
        m.run, 10, 'idle power', format(
            '{:.12g} W is {} of the rating of {} × {}, at {} of the peak: is it the power of a'
            ' machine that rests?', m.power_w,
            format_share(m.power_w / (c.rated_power_w * m.chip_count), 0), m.chip_count, m.chip,
            format_share(m.peak_share, 0)
        ), m.power_w, c.rated_power_w * m.chip_count / 5
    FROM ours m
    JOIN chips c USING (chip)
    WHERE m.peak_share >= 0.05 AND m.power_w < c.rated_power_w * m.chip_count / 5
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
)
