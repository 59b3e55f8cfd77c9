-- Each cell with a figure as its certificate has it: where it stands in its source, and which row of
-- the release states it. `digits`, `stated`, `key`, `in` and `figure` are null where it has none.
WITH stated AS (
    UNPIVOT (
        SELECT
            result_id, chip_count::DOUBLE AS chip_count, batch_size::DOUBLE AS batch_size,
            micro_batch_size::DOUBLE AS micro_batch_size, input_tokens::DOUBLE AS input_tokens,
            output_tokens::DOUBLE AS output_tokens, throughput, latency_ms, efficiency,
            time_to_train_s
        FROM results
    )
    ON COLUMNS(* EXCLUDE result_id) INTO NAME column_name VALUE figure
),
figure_cells AS (
    SELECT
        result_id, column_name, 'results.csv' AS stated, {'result_id': result_id}::JSON AS key,
        column_name AS stated_in, figure
    FROM stated
    UNION ALL
    SELECT
        result_id, metric, 'figures.csv', {'result_id': result_id, 'metric': metric}::JSON,
        'value', value
    FROM figures
    UNION ALL
    SELECT
        microbenchmark_id, 'value', 'microbenchmarks.csv',
        {'microbenchmark_id': microbenchmark_id}::JSON, 'canonical_value', canonical_value
    FROM microbenchmarks
    UNION ALL
    SELECT
        microbenchmark_id, 'chip_count', 'microbenchmarks.csv',
        {'microbenchmark_id': microbenchmark_id}::JSON, 'chip_count', chip_count::DOUBLE
    FROM microbenchmarks
)
SELECT
    'printed' AS kind, concat(c.result_id, ' ', c.cell_number) AS id, c.column_name AS "column",
    d.file, d.sha256, c.locator, c.raw_text AS raw, c.value, c.unit, c.factor,
    -- what we computed has 12 digits, what others printed has all of theirs
    CASE WHEN d.kind IN ('derived', 'run') THEN 12 END AS digits,
    f.stated, f.key, f.stated_in AS "in", f.figure
FROM cells c
JOIN documents d USING (document_id)
LEFT JOIN figure_cells f
    ON f.result_id = c.result_id AND f.column_name = c.column_name AND c.factor IS NOT NULL
    AND f.figure IS NOT NULL
WHERE c.value IS NOT NULL
ORDER BY c.result_id, c.cell_number
