-- The conditions in which a run and its nearest rows differ, in the order of a report: those that
-- both sides state first. Where a side states nothing, they may be the same or not.
WITH compared AS (
    SELECT
        n.run, n.position AS match,
        [
            {'what': 'figures', 'ours': name_origin(m.origin), 'theirs': name_origin(r.origin)},
            {'what': 'batch size', 'ours': m.batch_size::VARCHAR, 'theirs': r.batch_size::VARCHAR},
            {'what': 'variant', 'ours': m.variant, 'theirs': r.variant},
            {'what': 'conditions', 'ours': m.conditions, 'theirs': r.conditions},
            {'what': 'dataset', 'ours': m.dataset, 'theirs': r.dataset},
            {'what': 'machine', 'ours': m.platform, 'theirs': r.platform},
            {'what': 'chips', 'ours': m.chip_count::VARCHAR, 'theirs': r.chip_count::VARCHAR},
            {'what': 'sessions', 'ours': m.sessions, 'theirs': r.sessions},
            {'what': 'weights', 'ours': m.weights, 'theirs': r.weights},
            {'what': 'pre-processing', 'ours': m.preprocessing, 'theirs': r.preprocessing},
            {'what': 'model precision', 'ours': m.model_precision, 'theirs': r.model_precision},
            {'what': 'precision', 'ours': m.precision, 'theirs': r.precision},
            {'what': 'latency', 'ours': m.reported_latency, 'theirs': r.reported_latency},
            CASE WHEN m.latency_ms > 0 AND r.latency_ms > 0
                AND m.latency_scope <> '' AND r.latency_scope <> '' THEN
                {'what': 'latency timed on', 'ours': m.latency_scope, 'theirs': r.latency_scope}
            END,
            {'what': 'pipeline', 'ours': m.pipeline, 'theirs': r.pipeline},
            {'what': 'framework', 'ours': m.framework, 'theirs': r.framework},
            -- what one side states alone says nothing of another framework's versions
            CASE WHEN m.sdk_version <> '' AND r.sdk_version <> ''
                OR coalesce(normalise_name(m.framework) = normalise_name(r.framework), FALSE) THEN
                {'what': 'SDK version', 'ours': m.sdk_version, 'theirs': r.sdk_version}
            END,
            {'what': 'MLPerf round', 'ours': m.mlperf_round, 'theirs': r.mlperf_round},
            CASE WHEN m.power_w > 0 AND (r.power_w > 0 OR r.efficiency > 0) THEN
                {'what': 'power scope', 'ours': m.reported_power, 'theirs': r.reported_power}
            END
        ] AS conditions
    FROM nearest n
    JOIN ours m USING (run)
    JOIN theirs r USING (result_id)
),
conditions AS (
    SELECT
        run, match, unnest(conditions, recursive := TRUE),
        generate_subscripts(conditions, 1) AS position
    FROM compared
),
stated AS (
    SELECT run, match, position, what, nullif(ours, '') AS ours, nullif(theirs, '') AS theirs
    FROM conditions
),
judged AS (
    SELECT *, ours IS NOT NULL AND theirs IS NOT NULL AS known
    FROM stated
    WHERE ours IS NOT NULL OR theirs IS NOT NULL
)
SELECT
    run, match, list(
        {'what': what, 'ours': ours, 'theirs': theirs, 'known': known}
        ORDER BY NOT known, position
    ) AS differences
FROM judged
WHERE coalesce(normalise_name(ours) <> normalise_name(theirs), TRUE)
GROUP BY run, match
