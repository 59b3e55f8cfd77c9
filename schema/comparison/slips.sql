-- Slips that no neighbouring row is needed to see: tiles counted as chips, a latency that leaves all
-- of a chip idle, and the power of an idle machine. Each is doubtful, and its question names the
-- slip. The limits are conventions.
WITH tiles AS (
    SELECT
        run, 7 AS position, 'number of chips' AS name, format(
            'an IPU has {} tiles, and {} chips are stated: is it the number of tiles?', per_chip,
            chip_count
        ) AS message, chip_count::DOUBLE AS value, NULL::DOUBLE AS limit_
    FROM ours
    JOIN (SELECT unnest([1216, 1472]) AS per_chip) ON chip_count % per_chip = 0
    WHERE family IN ({ipu_families})
),
machine AS (
    SELECT
        run, 7, 'number of chips', format(
            '{} has {}, and {} are stated: are they the multiprocessors or tiles, or is it the'
            ' figure of a larger machine?', platform, format_count(machine_chips, 'chip'),
            chip_count
        ), chip_count, machine_chips
    FROM ours
    ANTI JOIN tiles USING (run)
    WHERE chip_count > machine_chips
),
working AS (  -- runs that a row of the same set-up shows to be about as fast as the machine is
    SELECT DISTINCT run
    FROM shared_figures f
    JOIN pairs p USING (run, result_id)
    WHERE p.is_same AND p.obstacle IS NULL AND f.obstacle IS NULL
        AND f.figure = 'throughput' AND abs(ln(f.ratio)) <= ln(1.35)
),
scores AS (  -- of official entries of the same chips, comparable with a run
    SELECT
        f.run, f.ours, count(*) AS entries, min(f.theirs) AS lowest, max(f.theirs) AS highest
    FROM shared_figures f
    JOIN pairs p USING (run, result_id)
    JOIN ours m USING (run)
    JOIN theirs r USING (result_id)
    WHERE f.figure = 'minutes' AND f.obstacle IS NULL AND p.obstacle IS NULL AND NOT p.is_same
        AND r.is_evidence AND m.chip = r.chip AND m.chip_count = r.chip_count
        -- a row of the same machine says more
        AND NOT EXISTS (FROM pairs own WHERE own.run = f.run AND own.is_same AND own.obstacle IS NULL)
    GROUP BY f.run, f.ours
),
minutes AS (  -- a factor of 2.5 is a convention
    SELECT
        run, 12, 'MLPerf score', format(
            '{:.12g} min, and {} of as many such chips {} {} to {} min{}', ours,
            format_count(entries, 'score'), if(entries = 1, 'is', 'are'),
            format_plain(lowest), format_plain(highest), CASE
                WHEN ours / 60 BETWEEN lowest / 1.35 AND highest * 1.35
                    THEN ': is it in seconds? State minutes'
                WHEN ours * 60 BETWEEN lowest / 1.35 AND highest * 1.35
                    THEN ': is it in hours? State minutes'
                WHEN ours < lowest THEN ': is it the score of more chips? State chip_count'
                ELSE ': is it the score of fewer chips? State chip_count'
            END
        ), ours, if(ours > highest, highest, lowest)
    FROM scores
    WHERE entries > 1 AND (ours > 2.5 * highest OR ours < lowest / 2.5)
),
slow AS (
    -- A millionth of the peak of one chip: small networks at batch 1, driven by a slow host, have
    -- ten times as much.
    SELECT
        run, 9, 'latency ceiling', format(
            'in {:.12g} ms a batch uses {} of the peak of one chip: is it in microseconds or'
            ' nanoseconds? State latency_ms in milliseconds', latency_ms,
            format_plain(used, digits := 2)
        ), used, 1e-6
    FROM (
        SELECT *, compute_tflops(
            if(latency_basis = 'per-item', 1, batch_size) * 1000 / latency_ms, counted_gmacs,
            count_passes(task)
        ) / peak AS used
        FROM ours
    )
    WHERE used < 1e-6
),
powers AS (
    SELECT
        m.*, coalesce(m.power_w, m.throughput / m.efficiency) AS power,
        coalesce(c.rated_power_w * m.chip_count, m.rated_power_w) AS rating, power / rating AS share
    FROM ours m
    JOIN chips c USING (chip)
),
idle AS (
    -- a machine that computes at a tenth of its peak draws more than a fifth of its rating
    SELECT
        run, 10, 'idle power', format(
            '{} W is {} of the rating of {} × {}{}: is it the power of an idle machine{}?',
            format_plain(power, digits := 4), format_share(share, 0), chip_count, chip,
            coalesce(format(', at {} of the peak', format_share(peak_share, 0)),
                ', at the speed of a busy one'),
            if(chip_count > 1, ', or of one chip', '')
        ), power, rating / 5
    FROM powers
    WHERE share < 0.2 AND (peak_share >= 0.1 OR run IN (FROM working))
),
exchanged AS (
    SELECT
        m.run, 11, 'exchanged figures', format(
            'throughput {:.12g} and latency {:.12g} ms are nearly the latency and the throughput'
            ' of {} ({}, batch {}): are they exchanged?', m.throughput, m.latency_ms,
            arg_min(r.publisher, r.place), m.platform, m.batch_size
        ), m.throughput, NULL
    FROM ours m
    JOIN theirs r USING (model, task, platform, batch_size)
    WHERE r.is_evidence AND r.doubt IS NULL
        AND coalesce(m.variant = r.variant, m.sequence_length IS NOT DISTINCT FROM r.sequence_length)
        AND m.precision IS NOT DISTINCT FROM r.precision
        AND abs(ln(m.throughput / r.latency_ms)) < 0.1
        AND abs(ln(m.latency_ms / r.throughput)) < 0.1
        AND abs(ln(m.throughput / m.latency_ms)) > 0.5
    GROUP BY m.run, m.throughput, m.latency_ms, m.platform, m.batch_size
)
SELECT run, position, name, 'doubtful' AS outcome, message, value, limit_ AS "limit"
FROM (
    FROM tiles
    UNION ALL FROM machine
    UNION ALL FROM slow
    UNION ALL FROM minutes
    UNION ALL FROM idle
    UNION ALL FROM exchanged
)
