-- Each cell with a figure: where it stands in its source, and which row of the release states it.
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
measured AS (
    SELECT microbenchmark_id, 'value' AS column_name, 'canonical_value' AS stated_in,
        canonical_value AS figure
    FROM microbenchmarks
    UNION ALL
    SELECT microbenchmark_id, 'chip_count', 'chip_count', chip_count::DOUBLE
    FROM microbenchmarks
)
SELECT
    c.result_id, c.cell_number, c.column_name, d.file, d.sha256, c.locator,
    c.raw_text, c.value, c.unit, c.factor,
    -- what we computed has 12 digits, what others printed has all of theirs
    d.kind IN ('derived', 'run') AS is_computed,
    CASE
        WHEN s.figure IS NOT NULL THEN 'results'
        WHEN f.value IS NOT NULL THEN 'figures'
        WHEN m.figure IS NOT NULL THEN 'microbenchmarks'
    END AS stated_by,
    coalesce(m.stated_in, CASE WHEN f.value IS NOT NULL THEN 'value' END, c.column_name)
        AS stated_in,
    coalesce(s.figure, f.value, m.figure) AS figure
FROM cells c
JOIN documents d USING (document_id)
LEFT JOIN stated s
    ON s.result_id = c.result_id AND s.column_name = c.column_name AND c.factor IS NOT NULL
LEFT JOIN figures f
    ON f.result_id = c.result_id AND f.metric = c.column_name AND c.factor IS NOT NULL
LEFT JOIN measured m
    ON m.microbenchmark_id = c.result_id AND m.column_name = c.column_name
    AND c.factor IS NOT NULL
WHERE c.value IS NOT NULL
ORDER BY c.result_id, c.cell_number
