-- GPT-117M of CARAML: the README's batch over the time of its step beside its rate; then the power of one IPU that table II
-- implies, first as if the energy of an epoch were that of one batch, then from what a larger batch adds to the four steps
-- of an epoch, where a constant part of the energy, such as that of compilation, drops out.
WITH rows AS (
    SELECT result_id, batch_size, throughput, e.value AS run_energy_j, batch_size / throughput AS seconds
    FROM results
    JOIN figures AS e USING (result_id)
    WHERE e.metric = 'run_energy_j' AND document_id = 'independent-caraml-2024' AND model_printed = 'GPT-117M'
), steps AS (
    SELECT *, lag(run_energy_j) OVER batches AS energy_before, lag(seconds) OVER batches AS seconds_before,
        lag(batch_size) OVER batches AS batch_before, lag(result_id) OVER batches AS result_before
    FROM rows
    WINDOW batches AS (ORDER BY batch_size)
), readme AS (
    SELECT *, regexp_extract(conditions, 'step of ([\d.]+) s', 1)::DOUBLE AS step_s
    FROM results
    WHERE document_id = 'independent-caraml-readme' AND model_printed = 'GPT-117M' AND throughput IS NOT NULL AND batch_size = 2048
), parts AS (
    SELECT
        1 AS part, batch_size,
        batch_size / step_s AS value,
        'sequences per second of the README, batch ' || batch_size AS baseline,
        printf('%d / %g s = %.2f; printed %g', batch_size, step_s, batch_size / step_s, throughput) AS arithmetic,
        ['results:' || result_id] AS inputs,
        NULL::VARCHAR AS relation
    FROM readme
    UNION ALL
    SELECT
        2, batch_size, run_energy_j / seconds, 'W of one IPU, energy of an epoch over one batch of ' || batch_size,
        printf('%.0f J / (%d / %g s) = %.0f W', run_energy_j, batch_size, throughput, run_energy_j / seconds),
        ['results:' || result_id], NULL
    FROM rows
    UNION ALL
    SELECT
        3, batch_size, (run_energy_j - energy_before) / (4 * (seconds - seconds_before)),
        'W of one IPU, what four steps of batch ' || batch_size || ' add to those of ' || batch_before,
        printf('(%.0f - %.0f) J / (4 x (%.2f - %.2f) s) = %.0f W', run_energy_j, energy_before, seconds, seconds_before,
            (run_energy_j - energy_before) / (4 * (seconds - seconds_before))),
        ['results:' || result_before, 'results:' || result_id], NULL
    FROM steps
    WHERE batch_before >= 512
)
SELECT value, baseline, arithmetic, inputs, relation
FROM parts
ORDER BY part, batch_size
