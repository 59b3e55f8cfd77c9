SELECT
    benchmark, comparable_rounds, division, availability,
    round, submitter, system, accelerator, accelerators, framework, minutes, scaling_factor, normalised,
    run_minutes_min, run_minutes_max, run_minutes_cv, n_runs, n_success, global_batch_size,
    epochs_to_converge, samples_to_converge,
    mlperf_id, mlperf_id_confidence, path, attribution,
    company, accelerator_canonical, nodes, same_as,
    CASE WHEN same_as IS NULL THEN
        rank() OVER (
            PARTITION BY coalesce(comparable_model, benchmark), comparable_rounds, division, same_as IS NULL
            ORDER BY minutes
        )
    END AS rank
FROM mlperf_entries
WHERE minutes IS NOT NULL
ORDER BY benchmark, comparable_rounds, division, availability, accelerators, minutes, path
