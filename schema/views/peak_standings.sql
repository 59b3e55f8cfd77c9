WITH stated AS (
    SELECT
        chip, precision, sparsity, count(DISTINCT source) AS sources,
        bool_or(source_kind = 'maker') AS by_maker,
        min(tflops) AS lowest_tflops, max(tflops) AS highest_tflops
    FROM detail.peak_sources
    GROUP BY ALL
)
SELECT
    chip, precision, sparsity,
    CASE
        WHEN by_maker THEN 'maker'
        WHEN sources = 1 THEN 'one source'
        WHEN highest_tflops <= lowest_tflops * 1.01 THEN 'agreed'  -- as 756 and 756.5
        ELSE 'disputed'
    END AS standing,
    lowest_tflops, highest_tflops, sources
FROM stated
