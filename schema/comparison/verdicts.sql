-- One status and one sentence for each run: what is impossible first, then what the nearest
-- measured row of the same set-up says, then those of other conditions. No verdict rests on a row
-- that is emulated, or submitted by a user.
WITH firsts AS (  -- the first figure of each nearest row that a verdict may rest on
    SELECT *, row_number() OVER (PARTITION BY run ORDER BY round(distance, 9), match) AS place
    FROM ratios
    WHERE is_first AND is_evidence
),
settled AS (  -- of the nearest row of the same set-up, the figure that is furthest off
    SELECT r.*, f.sentence AS first_sentence
    FROM firsts f
    JOIN ratios r USING (run, match)
    WHERE f.is_same AND f.settles AND r.settles
    QUALIFY row_number() OVER (PARTITION BY run ORDER BY f.place, r.gap DESC, r.position) = 1
),
agreeing AS (  -- rows of the same set-up that are as a run, where the nearest one is not
    SELECT run, format(
        '{} × {} ({}, {})', format_plain(ratio), result_id, publisher, platform
    ) AS text
    FROM (
        SELECT
            f.run, f.result_id, r.publisher, r.platform, f.figure = s.figure AS is_settled,
            f.ratio, r.place, max(abs(ln(f.ratio))) OVER (PARTITION BY f.run, f.result_id) AS off
        FROM settled s
        JOIN shared_figures f USING (run)
        JOIN pairs p USING (run, result_id)
        JOIN theirs r USING (result_id)
        WHERE s.gap > {doubtful_factor} AND p.is_same AND p.obstacle IS NULL
            AND f.obstacle IS NULL AND r.is_evidence
    )
    WHERE is_settled AND off <= ln({doubtful_factor})
    QUALIFY row_number() OVER (PARTITION BY run ORDER BY off, place) = 1
),
by_row AS (
    SELECT
        s.run,
        if(s.gap > {doubtful_factor} AND a.run IS NULL, 'doubtful', 'plausible') AS status,
        if(s.gap > {doubtful_factor}, if(a.run IS NOT NULL, format(
            '{}, but another row of this set-up agrees: {}', s.sentence, a.text
        ), format(
            '{}: more than a factor of {doubtful_factor} apart on the same machine{}{}', s.sentence,
            if(m.benchmark IS NULL, ' at the same batch size', ''), coalesce('; ' || e.text, '')
        ) || CASE
            WHEN s.figure = 'minutes' AND s.ratio * s.epochs BETWEEN 0.8 AND 1.25 THEN
                format('; that row trained for {:g} epochs: is it the time of one epoch?', s.epochs)
            WHEN s.figure <> 'latency_ms' THEN ''
            WHEN s.ratio > {doubtful_factor} AND m.latency_max_ms > 3 * m.latency_ms THEN format(
                '; the longest latency is {} times that: are the first runs among the timed ones?'
                ' Leave out the warm-up', format_plain(m.latency_max_ms / m.latency_ms)
            )
            WHEN s.ratio < 0.1 AND coalesce(m.family NOT IN ({ipu_families}), TRUE)
                THEN '; was the device synchronised before the clock was read?'
            ELSE ''
        END), s.first_sentence) AS text
    FROM settled s
    JOIN ours m USING (run)
    LEFT JOIN agreeing a USING (run)
    LEFT JOIN explanations e
        ON (e.run, e.match, e.figure) = (s.run, s.match, s.figure) AND NOT e.elsewhere
),
bases AS (  -- a latency by the nearest row of each thing that it may time
    SELECT
        f.*, e.text AS explanation,
        format(
            '{} × {} {}', format_plain(f.ratio),
            coalesce('if ' || f.their_basis, 'a row that does not say what it times'), f.row_words
        ) AS text
    FROM firsts f
    ANTI JOIN settled USING (run)
    LEFT JOIN explanations e
        ON (e.run, e.match, e.figure) = (f.run, f.match, f.figure) AND NOT e.elsewhere
    WHERE f.is_same
    QUALIFY row_number() OVER (PARTITION BY f.run, f.their_basis ORDER BY f.place) = 1
),
by_basis AS (
    -- What only the basis can explain settles nothing: without two bases to choose from, as many
    -- batches may be in flight as Little's law lets pass.
    SELECT
        b.run, {doubtful_factor} * if(count(DISTINCT b.their_basis) > 1, 1, {MAX_BATCHES_IN_FLIGHT}) AS furthest,
        CASE
            WHEN max(b.gap) <= {doubtful_factor} THEN 'plausible'
            WHEN min(b.gap) > furthest THEN 'doubtful'
            ELSE 'depends'
        END AS status,
        string_agg(b.text, '; ' ORDER BY b.place) || CASE status
            WHEN 'doubtful' THEN
                ': more than a factor of {doubtful_factor} apart, whatever the latency times'
                || coalesce('; ' || arg_min(b.explanation, b.place), '')
            WHEN 'depends' THEN format(
                ': what the latency times decides; {}', if(any_value(m.basis) IS NULL,
                    'state it with latency_basis', 'the rows do not say')
            )
            ELSE ''
        END AS text
    FROM bases b
    JOIN ours m USING (run)
    GROUP BY b.run
),
doubted AS (  -- rows of the same set-up that an error or a doubt keeps from a comparison
    SELECT
        p.run, format(
            '{} of the same machine, batch size and precision {} not compared with{} {} ({})',
            format_count(count(*), 'row'), if(count(*) = 1, 'is', 'are'),
            if(count(*) = 1, ':', ', such as'), arg_min(r.result_id, r.place),
            arg_min(r.doubt, r.place)
        ) AS text
    FROM pairs p
    JOIN theirs r USING (result_id)
    WHERE p.is_doubted
    GROUP BY p.run
),
doubts AS (  -- what is wrong, seen from a row of another machine or precision
    SELECT
        f.run, f.place, f.sentence || ': ' || coalesce(s.wrong_precision, format(
            'each chip would be {} times as fast, less than {}; {}',
            format_plain(s.speed), format_plain(s.slowest), e.text
        )) AS text
    FROM firsts f
    JOIN speeds s USING (run, match)
    LEFT JOIN explanations e ON e.run = f.run AND e.match = f.match AND e.elsewhere
),
elsewhere AS (
    SELECT
        f.run, if(any_value(d.run) IS NULL, 'other-conditions', 'doubtful') AS status,
        coalesce(
            arg_min(d.text, d.place),
            format('{}: {}', arg_min(f.sentence, f.place), coalesce(
                any_value(t.text), 'no row of the same machine, batch size and precision'
                || coalesce(arg_min(f.other_chip, f.place), '')
            ))
        ) AS text
    FROM firsts f
    LEFT JOIN doubts d ON d.run = f.run AND d.text IS NOT NULL
    LEFT JOIN doubted t ON t.run = f.run
    GROUP BY f.run
),
unverified AS (
    SELECT
        r.run, if(r.party = 'emulated', 'only-emulated', 'no-comparable-row') AS status,
        format(
            '{}: no {} row may be compared{}', r.sentence,
            if(r.party = 'emulated', 'measured', 'other'), coalesce('; ' || d.text, '')
        ) AS text
    FROM ratios r
    LEFT JOIN doubted d USING (run)
    WHERE r.is_first
    QUALIFY row_number() OVER (PARTITION BY r.run ORDER BY r.party = 'emulated' DESC, r.match) = 1
),
apart AS (  -- the one condition that keeps most rows of the same set-up apart
    SELECT run, reason, format(
        'of the same machine, batch size and precision, {} because of this alone: {}',
        format_count(rows, 'row'), reason
    ) AS text
    FROM (
        SELECT run, obstacle.reason AS reason, count(*) AS rows
        FROM pairs
        WHERE is_only_obstacle
        GROUP BY ALL
    )
    QUALIFY row_number() OVER (PARTITION BY run ORDER BY rows DESC, reason) = 1
),
refused AS (
    SELECT
        f.run, 'no-comparable-row' AS status,
        format(
            '{} of {} may not be compared, {} because: {}{}{}', format_count(sum(f.rows), 'row'),
            any_value(m.model), arg_min(f.rows, f.position), arg_min(f.reason, f.position),
            if(
                any_value(o.reason) <> arg_min(f.reason, f.position),
                coalesce('; ' || any_value(o.text), ''), ''
            ), coalesce('; ' || any_value(d.text), '')
        ) AS text
    FROM refusals f
    JOIN ours m USING (run)
    LEFT JOIN apart o USING (run)
    LEFT JOIN doubted d USING (run)
    GROUP BY f.run
),
failed AS (
    SELECT
        run, if(outcome = 'impossible', 'implausible', 'doubtful') AS status,
        format('{}: {}', name, message) AS text
    FROM checks
    WHERE outcome IN ('impossible', 'doubtful')
    QUALIFY row_number() OVER (
        PARTITION BY run ORDER BY outcome = 'impossible' DESC, position
    ) = 1
),
grounds AS (
    SELECT run, 1 AS place, status, text FROM failed
    UNION ALL SELECT run, 2, status, text FROM by_basis
    UNION ALL SELECT run, 2, status, text FROM by_row
    UNION ALL SELECT run, 3, status, text FROM elsewhere
    UNION ALL SELECT run, 4, status, text FROM unverified
    UNION ALL SELECT run, 5, status, text FROM refused
    UNION ALL
    SELECT run, 6, 'no-comparable-row', 'the record has no row of ' || model FROM ours
),
judged AS (
    SELECT
        g.run, g.status,
        format(
            '{}{}: {}{}', if(m.origin = 'emulated', 'emulated, not measured: ', ''),
            replace(g.status, '-', ' '), g.text,
            coalesce('; your run is marked as suspect: ' || m.suspect, '')
        ) AS text
    FROM grounds g
    JOIN ours m USING (run)
    QUALIFY row_number() OVER (PARTITION BY g.run ORDER BY g.place) = 1
),
best AS (  -- the highest share of the peak that a usable row of the model and task reaches
    SELECT
        m.run, m.chip_count, m.precision, m.peak_share AS share, r.peak_share AS highest,
        -- of about as many items at once: small batches leave most of a chip idle
        max(r.peak_share) FILTER (
            coalesce(r.batch_size <= {max_batch_factor} * m.batch_size OR m.task = 'training', TRUE)
        ) OVER (PARTITION BY m.run) AS highest_alike,
        format(
            '{} of the peak; the highest of the record is {} ({}, {})', format_share(share, 2),
            format_share(highest, 2), r.publisher, r.platform
        ) AS words
    FROM ours m
    JOIN theirs r USING (model, task)
    WHERE m.peak_share > 0 AND r.peak_share > 0 AND r.usable
    QUALIFY row_number() OVER (PARTITION BY m.run ORDER BY r.peak_share DESC, r.place) = 1
),
shares AS (
    -- A chip may use 3 times more than any of the record, and 40 % of the peak is never too high.
    -- From 4 chips on a figure may be that of one of them; machines differ by 4 in what they reach.
    SELECT
        run, CASE
            WHEN share > highest * 3 AND share > 0.4 THEN format(
                'doubtful: {}; is it the figure of more chips? State chip_count; or is it not {}?'
                ' State precision', words, precision
            )
            WHEN chip_count >= 4 AND share < highest_alike / chip_count / 4 THEN format(
                'doubtful: {}, far less than 1/{} of it: is it the figure of one chip of {}?',
                words, chip_count, chip_count
            )
        END AS text
    FROM best
),
packed AS (
    SELECT run, format(
        '; {} of packed sequences {} this machine, batch size and precision: state packed if yours'
        ' are packed', format_count(count(*), 'row'), if(count(*) = 1, 'has', 'have')
    ) AS text
    FROM pairs
    ANTI JOIN (FROM nearest WHERE is_same) same USING (run)
    WHERE is_only_packed
    GROUP BY run
)
SELECT
    j.run,
    j.status NOT IN ('implausible', 'doubtful', 'plausible', 'depends') AND s.text IS NOT NULL
        AS is_share_doubtful,
    if(is_share_doubtful, 'doubtful', j.status) AS status,
    if(is_share_doubtful, s.text, j.text) || coalesce(p.text, '') AS verdict
FROM judged j
LEFT JOIN shares s USING (run)
LEFT JOIN packed p USING (run)
