-- Each run with each row of its model: the reason for not comparing the two, null where they may be
-- compared, and whether they have the same set-up: machine, chips, batch size and precision.
WITH figures AS (
    SELECT
        run, result_id,
        bool_or(obstacle IS NULL) AS any_compares,
        list(obstacle ORDER BY position) FILTER (obstacle IS NOT NULL) AS obstacles,
        list_transform(obstacles, lambda own: own.reason) AS reasons
    FROM shared_figures
    GROUP BY run, result_id
),
judged AS (
    SELECT
        o.run, o.result_id, o.obstacles, r.is_evidence, r.doubt,
        r.packed AND m.packed IS NULL AS is_packed,
        CASE
            WHEN f.any_compares THEN NULL
            WHEN f.run IS NULL THEN
                refuse('figure', 'different-figures', format(
                    'no figure in common: {} / {}', m.printed,
                    coalesce(nullif(r.printed, ''), 'none')
                ))
            -- throughput and efficiency may have the same reason
            ELSE refuse(
                f.obstacles[1].column_name, f.obstacles[1].code,
                array_to_string(list_filter(
                    f.reasons, lambda reason, place: list_position(f.reasons, reason) = place
                ), '; ')
            )
        END AS missing_figure,
        coalesce(m.platform = r.platform, FALSE)
            AND coalesce(m.chip_count = r.chip_count, TRUE)
            -- the rules of the benchmark leave batch and precision to the submitter
            AND (
                m.benchmark IS NOT NULL
                OR m.batch_size IS NOT DISTINCT FROM r.batch_size
                    AND coalesce(m.precision = r.precision, TRUE)
            ) AS is_same
    FROM obstacles o
    JOIN ours m USING (run)
    JOIN theirs r USING (result_id)
    LEFT JOIN figures f USING (run, result_id)
)
SELECT
    run, result_id, is_same,
    coalesce(obstacles[1], missing_figure) AS obstacle,
    -- what keeps a row of the same set-up apart, where nothing else does
    is_same AND is_evidence AND len(obstacles) + (missing_figure IS NOT NULL)::INTEGER = 1
        AND coalesce(obstacles[1], missing_figure).code
            NOT IN ('flagged', 'different-figures', 'same-measurement')
        AND NOT ends_with(coalesce(obstacles[1], missing_figure).reason, 'not stated / not stated')
        AS is_only_obstacle,
    -- only an error or a doubt keeps it from a comparison
    is_same AND doubt <> '' AND missing_figure IS NULL AND is_evidence
        AND len(list_filter(obstacles, lambda own: own.code <> 'flagged')) = 0 AS is_doubted,
    -- only that its sequences are packed, of which the user says nothing
    is_same AND is_packed AND missing_figure IS NULL AND len(obstacles) = 1
        AND obstacles[1].column_name = 'packed' AS is_only_packed
FROM judged
