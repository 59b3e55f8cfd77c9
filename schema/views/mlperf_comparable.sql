SELECT
    e.benchmark, e.comparable_rounds, e.division, e.availability,
    e.round, e.submitter, e.platform, e.chip, e.chip_count, e.framework, e.minutes, e.scaling_factor, e.normalised,
    e.run_minutes_min, e.run_minutes_max, e.run_minutes_cv, e.n_runs, e.n_success, e.global_batch_size,
    e.epochs_to_converge, e.samples_to_converge,
    e.mlperf_id, e.mlperf_id_confidence, e.path, e.attribution,
    e.company, e.nodes, e.same_as,
    CASE WHEN e.same_as IS NULL THEN
        rank() OVER (
            PARTITION BY coalesce(e.model, e.benchmark), e.comparable_rounds, e.division, e.same_as IS NULL
            ORDER BY e.minutes
        )
    END AS rank,
    r.usable
FROM mlperf_entries e
JOIN results r USING (result_id)
WHERE e.minutes IS NOT NULL
ORDER BY e.benchmark, e.comparable_rounds, e.division, e.availability, e.chip_count, e.minutes, e.path
