-- The figures of the nearest rows that may be compared, in the sentence that a verdict has of one.
SELECT
    n.run, n.position AS match, n.party, n.is_same, n.distance, r.basis AS their_basis,
    f.position, f.figure, f.ours, f.theirs, f.ratio, f.low, f.high, f.unit,
    f.figure = n.first_figure AS is_first,
    greatest(f.ratio, 1 / f.ratio) AS gap,
    -- a latency of which a side does not say what it times settles nothing
    f.figure <> 'latency_ms' OR m.basis IS NOT NULL AND r.basis IS NOT NULL AS settles,
    if(f.figure = 'throughput' AND m.chip_count <> r.chip_count,
        f.ratio / m.chip_count * r.chip_count, NULL) AS per_chip,
    format(
        '({}, {}{}{}{}, {:.12g} {})', r.publisher, r.platform, coalesce(', ' || r.input_size, ''),
        coalesce(', batch ' || r.batch_size, ''), coalesce(', ' || r.framework, ''), f.theirs, f.unit
    ) AS row_words,
    format(
        '{}{} × the nearest {} {}', format_plain(f.ratio),
        coalesce(format(' ({} to {})', format_plain(f.low), format_plain(f.high)), ''),
        n.sentence, row_words
    ) AS sentence
FROM nearest n
JOIN ours m USING (run)
JOIN theirs r USING (result_id)
JOIN shared_figures f USING (run, result_id)
WHERE f.obstacle IS NULL
