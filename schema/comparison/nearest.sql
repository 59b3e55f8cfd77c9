-- The nearest row of each party, and of each thing that a latency may time where a run states a
-- latency without saying what it times. The distance of a row is the sum of what differs, 0 for the
-- same conditions: machine, batch or precision weigh more than all other parts together.
-- docs/how-to/compare-my-run.md has the same weights.
WITH compared AS (
    SELECT run, result_id, arg_min(figure, position) AS first_figure
    FROM shared_figures
    WHERE obstacle IS NULL
    GROUP BY run, result_id
),
distances AS (
    SELECT
        p.run, p.result_id, p.is_same, r.party, r.published_on, r.place, c.first_figure,
        if(m.basis IS NULL AND c.first_figure = 'latency_ms', r.basis, NULL) AS open_basis,
        CASE
            WHEN m.platform IS NULL THEN 6.0
            WHEN m.platform = r.platform AND coalesce(m.chip_count = r.chip_count, TRUE) THEN 0.0
            WHEN m.chip = r.chip THEN 3.0 + coalesce(count_doublings(m.chip_count, r.chip_count), 0)
            WHEN m.family = r.family THEN 6.0
            ELSE 8.0
        END AS machine,
        CASE
            WHEN m.batch_size IS NULL AND r.batch_size IS NULL THEN 0.0
            ELSE coalesce(4.0 * count_doublings(m.batch_size, r.batch_size), 4.0)
        END AS batch,
        CASE m.precision = r.precision WHEN TRUE THEN 0.0 WHEN FALSE THEN 3.0 ELSE 1.0 END
            AS precision,
        CASE m.framework = r.framework WHEN TRUE THEN 0.0 WHEN FALSE THEN 1.0 ELSE 0.5 END
            AS framework,
        if(
            normalise_name(coalesce(m.variant, '')) = normalise_name(coalesce(r.variant, '')),
            0.0, 0.5
        ) AS variant,
        if(m.sdk_version IS NOT DISTINCT FROM r.sdk_version, 0.0, 0.25) AS sdk_version
    FROM pairs p
    JOIN compared c USING (run, result_id)
    JOIN ours m USING (run)
    JOIN theirs r USING (result_id)
    WHERE p.obstacle IS NULL
),
ordered AS (  -- of rows that are equally near, the newest first
    SELECT
        * EXCLUDE (place),
        (machine + batch + precision + framework + variant + sdk_version)::DOUBLE AS distance,
        row_number() OVER (
            PARTITION BY run ORDER BY round(distance, 9), published_on DESC NULLS LAST, place
        ) AS place
    FROM distances
)
SELECT
    run, result_id, is_same, party, title, sentence, distance, first_figure,
    row_number() OVER (PARTITION BY run ORDER BY parties.place, ordered.place) AS position
FROM ordered
JOIN parties USING (party)
QUALIFY row_number() OVER (PARTITION BY run, party, open_basis ORDER BY ordered.place) = 1
    -- a row that does not say what it times is one more only where no other is nearer
    AND (
        open_basis IS NOT NULL
        OR row_number() OVER (PARTITION BY run, party ORDER BY ordered.place) = 1
    )
