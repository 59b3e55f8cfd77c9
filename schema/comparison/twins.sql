-- A figure that another row prints for another set-up, to the last digit or nearly: a row that
-- differs from a run in one condition alone. What is nearly equal counts where no row of the stated
-- set-up is as near. Each is doubtful, and its question names the condition. The limits are
-- conventions, held against the rows of the record: each of them as a run of its own.
WITH printed AS (
    SELECT m.run, f.*, count_digits(value) AS digits
    FROM ours m
    CROSS JOIN LATERAL (
        VALUES ('throughput', m.throughput, 'throughput'), ('latency', m.latency_ms, 'latency_ms'),
            ('minutes', m.minutes, 'minutes')
    ) f(name, value, figure)
    WHERE value > 0
),
own AS (  -- how far off the nearest row of the stated set-up is
    SELECT s.run, s.figure, min(abs(ln(s.ratio))) AS apart
    FROM shared_figures s
    JOIN pairs p USING (run, result_id)
    JOIN theirs r USING (result_id)
    WHERE p.is_same AND p.obstacle IS NULL AND s.obstacle IS NULL AND r.is_evidence
    GROUP BY ALL
),
near AS (
    SELECT
        p.run, p.name, p.figure, p.value, p.digits, r.place, o.apart AS own_off,
        CASE p.figure
            WHEN 'throughput' THEN r.throughput
            WHEN 'latency_ms' THEN r.latency_ms
            ELSE r.minutes
        END AS theirs,
        abs(ln(p.value / theirs)) AS off,
        format('{} ({}{})', r.publisher, r.platform, coalesce(', batch ' || r.batch_size, ''))
            AS row_words,
        -- Digits that are equal by chance once in a thousand runs or less: of one machine at one
        -- batch there are few rows, of its batches more, of all machines hundreds.
        CASE
            WHEN m.platform IS DISTINCT FROM r.platform THEN 5
            WHEN m.batch_size <> r.batch_size THEN 4
            ELSE 3
        END AS enough,
        -- alike otherwise: the machine, what one item is, what a latency times
        (m.batch_size IS NULL) = (r.batch_size IS NULL) AND coalesce(m.framework = r.framework, TRUE)
            AND (m.platform IS NOT DISTINCT FROM r.platform OR m.chip <> r.chip)
            AND (p.figure <> 'throughput' OR m.item IS NOT DISTINCT FROM r.item)
            AND (p.figure <> 'latency_ms' OR is_same_latency(m.basis, r.basis))
            AND (p.figure <> 'minutes' OR m.division = r.division AND m.mlperf_round = r.mlperf_round)
            AS is_alike,
        list_filter([
            {'what': if(count_bits(r.type) < count_bits(m.type), 'fewer bits', 'type'),
                'differs': m.type <> r.type, 'question': format(
                    'is it a figure at {} called {}? State precision', r.precision, m.precision
                )},
            {'what': 'sequence', 'differs': m.sequence_length <> r.sequence_length,
                'question': format(
                    'is it that of sequence length {}, another sequence length than the stated {}?',
                    r.sequence_length, m.sequence_length
                )},
            {'what': 'phase', 'differs': m.phase <> r.phase,
                'question': format('is it that of {}?', r.phase)},
            {'what': 'packed', 'differs': m.packed <> r.packed,
                'question': 'are the sequences packed? State packed'},
            {'what': 'task', 'differs': m.task <> r.task, 'question': if(
                r.task = 'inference', 'is it the inference figure, of forward passes alone?',
                format('is it that of {}?', r.task)
            )},
            {'what': 'chip', 'differs': m.chip <> r.chip,
                'question': format('is it that of {}?', r.platform)},
            {'what': 'chips', 'differs': m.chip_count <> r.chip_count,
                'question': format('is it that of {}?', format_count(r.chip_count, 'chip'))},
            {'what': 'size', 'differs': m.input_size <> r.input_size,
                'question': format('is it that of another input size, {}?', r.input_size)},
            {'what': 'batch', 'differs': m.batch_size <> r.batch_size, 'question': format(
                'is it that of batch {}, and {} the micro-batch or the batch of one chip?',
                r.batch_size, m.batch_size
            )}
        ], lambda own: own.differs) AS differing,
        -- in training a batch is often that of one chip or of one micro-step
        m.task = 'training' AND r.batch_size >= 1000 * m.batch_size AS is_micro,
        m.batch_size
    FROM printed p
    JOIN ours m USING (run)
    JOIN theirs r USING (model)
    LEFT JOIN own o USING (run, figure)
    WHERE r.is_evidence AND r.doubt IS NULL AND theirs > 0 AND off <= ln(1.02)
),
copies AS (
    SELECT
        run, place, 1 AS kind, format(
            '{:.12g} is the {} of {} to the last digit; {}', value, name, row_words,
            differing[1].question
        ) AS message, value
    FROM near
    WHERE value = theirs
    -- a row that is alike in all that both state is the figure itself
    QUALIFY min(len(differing)) OVER (PARTITION BY run, figure) = 1
        AND len(differing) = 1 AND digits >= enough
),
twins AS (
    SELECT
        run, place, 2, format(
            '{:.12g} is within {} of the {} of {}{}; {}', value, format_share(exp(off) - 1, 1),
            name, row_words, coalesce(format(
                ', and {} times from the nearest row of the stated set-up',
                format_plain(exp(own_off))
            ), ''), differing[1].question
        ), value
    FROM near
    WHERE is_alike AND len(differing) = 1 AND CASE differing[1].what
        -- at a batch of a few items a network is as fast at any precision
        WHEN 'fewer bits' THEN own_off > ln(1.3) OR own_off IS NULL AND coalesce(batch_size >= 4, TRUE)
        WHEN 'phase' THEN own_off IS NULL OR own_off > ln(1.3)
        WHEN 'packed' THEN own_off IS NULL OR own_off > ln(1.3)
        WHEN 'task' THEN own_off IS NULL OR own_off > ln(1.3)
        WHEN 'sequence' THEN own_off > ln(1.3)
        WHEN 'chip' THEN own_off > ln(1.3)
        WHEN 'chips' THEN own_off > ln(1.3)
        -- neighbouring batches and sizes are often as fast: these name what is doubtful anyway
        WHEN 'batch' THEN own_off > ln({doubtful_factor}) OR own_off IS NULL AND is_micro
        ELSE own_off > ln({doubtful_factor})
    END
)
SELECT
    run, 8 AS position, if(kind = 1, 'equal figure', 'nearly equal figure') AS name,
    'doubtful' AS outcome, message, value, NULL::DOUBLE AS "limit"
FROM (
    FROM copies
    UNION ALL FROM twins
)
QUALIFY row_number() OVER (PARTITION BY run ORDER BY kind, place) = 1
