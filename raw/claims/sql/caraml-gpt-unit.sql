-- Power that table II implies: energy per IPU over the time of one epoch, which is the global batch over the throughput.
-- Both readings of the unit are shown for each batch. Where two batches are compared, a constant part of the energy, such
-- as that of compilation, drops out: extra energy over extra time.
WITH epochs AS (
    SELECT result_id, batch_size, throughput, run_energy_j, batch_size / throughput AS seconds
    FROM results
    WHERE document_id = 'independent-caraml-2024' AND model = 'GPT-117M'
), steps AS (
    SELECT *, lag(run_energy_j) OVER batches AS energy_before, lag(seconds) OVER batches AS seconds_before,
        lag(batch_size) OVER batches AS batch_before, lag(result_id) OVER batches AS result_before
    FROM epochs
    WINDOW batches AS (ORDER BY batch_size)
)
SELECT
    run_energy_j / seconds AS value,
    'throughput and batch count the same items; batch ' || batch_size AS baseline,
    printf('%.0f J / (%d / %g s) = %.0f W', run_energy_j, batch_size, throughput, run_energy_j / seconds) AS arithmetic,
    ['results:' || result_id] AS inputs,
    NULL::VARCHAR AS relation
FROM epochs
UNION ALL
SELECT
    run_energy_j / (seconds * 1024), 'batch in sequences of 1,024 tokens, throughput in tokens; batch ' || batch_size,
    printf('%.0f J / (%d x 1024 / %g s) = %.2f W', run_energy_j, batch_size, throughput, run_energy_j / (seconds * 1024)),
    ['results:' || result_id], NULL
FROM epochs
UNION ALL
SELECT
    (run_energy_j - energy_before) / (seconds - seconds_before),
    'same items, what batch ' || batch_size || ' adds to batch ' || batch_before,
    printf('(%.0f - %.0f) J / (%.2f - %.2f) s = %.0f W', run_energy_j, energy_before, seconds, seconds_before,
        (run_energy_j - energy_before) / (seconds - seconds_before)),
    ['results:' || result_before, 'results:' || result_id], NULL
FROM steps
WHERE batch_before >= 512
