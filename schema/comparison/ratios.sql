-- The figures of the nearest rows that may be compared, in the sentence that a verdict has of one,
-- with what the chips and the peaks of both lead to expect.
SELECT
    n.run, n.position AS match, n.party, r.is_evidence, n.is_same, n.distance, r.basis AS their_basis,
    f.* EXCLUDE (run, result_id, obstacle), f.figure = n.first_figure AS is_first,
    f.figure = 'throughput' AS is_rate,
    greatest(f.ratio, 1 / f.ratio) AS gap,
    -- a latency of which a side does not say what it times settles nothing
    f.figure <> 'latency_ms' OR m.basis IS NOT NULL AND r.basis IS NOT NULL AS settles,
    if(is_rate AND m.chip_count <> r.chip_count, f.ratio / m.chip_count * r.chip_count, NULL)
        AS per_chip,
    m.chip_count / r.chip_count AS chips, m.peak / r.peak AS faster,
    if(is_rate, f.ratio / coalesce(chips, 1), f.ratio) AS factor,
    format(
        '({}, {:.12g} {})', concat_ws(
            ', ', r.publisher, r.platform, r.input_size, 'batch ' || r.batch_size, r.framework
        ), f.theirs, f.unit
    ) AS row_words,
    format(
        '{}{} × the nearest {} {}', format_plain(f.ratio),
        coalesce(format(' ({} to {})', format_plain(f.low), format_plain(f.high)), ''),
        n.sentence, row_words
    ) AS sentence,
    -- nearly the same figure at a precision of a third of the peak
    if(
        is_rate AND m.platform = r.platform AND m.batch_size IS NOT DISTINCT FROM r.batch_size
            AND faster <= 0.3 AND f.ratio / chips > 0.8,
        format(
            'the peak at {} is {} of that at {}; is it a figure at {} called {}? State precision',
            m.precision, format_share(faster, 0), r.precision, r.precision, m.precision
        ), NULL
    ) AS wrong_precision,
    -- an A100-40GB may be an A100-SXM-40GB; DuckDB 2.0.0 fails at split_part where all chips are null
    if(
        string_split(r.chip, '-')[1] <> string_split(m.chip, '-')[1],
        '; its chip is ' || r.chip || ', and that of the run ' || m.chip, ''
    ) AS other_chip,
    m.task, r.epochs
FROM nearest n
JOIN ours m USING (run)
JOIN theirs r USING (result_id)
JOIN shared_figures f USING (run, result_id)
WHERE f.obstacle IS NULL
