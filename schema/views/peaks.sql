WITH products AS (  -- a product that keeps FP32 in its factors is not one of TF32
    SELECT
        chip, measured, microbenchmark_id,
        CASE component WHEN 'matrix product at 32 bits' THEN ['FP32'] ELSE ['FP16', 'BF16'] END AS precisions
    FROM detail.ceilings
    WHERE component LIKE 'matrix product%' AND usable AND unit = 'TFLOP/s'
),
best AS (
    SELECT
        s.chip, s.precision, s.sparsity, max(p.measured) AS measured_tflops,
        arg_max(p.microbenchmark_id, p.measured) AS microbenchmark_id
    FROM detail.peak_standings s
    JOIN products p
        ON list_contains(p.precisions, s.precision) AND list_has_all(list_words(p.chip), list_words(s.chip))
    WHERE s.sparsity = 'dense'
    GROUP BY ALL
)
SELECT
    s.chip, s.form_factor, s.precision, s.sparsity, s.clock, s.accumulation, s.tflops,
    standings.standing, standings.lowest_tflops, standings.highest_tflops,
    b.measured_tflops, b.microbenchmark_id,
    s.printed, s.source_kind, s.source, s.url, s.path, s.revision, s.dated, s.place, s.document_id, s.locator
FROM detail.peak_sources s
JOIN detail.peak_standings standings USING (chip, precision, sparsity)
LEFT JOIN best b USING (chip, precision, sparsity)
