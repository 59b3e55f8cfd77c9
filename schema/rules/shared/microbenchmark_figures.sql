-- The microbenchmarks with their figure as printed, `raw`. `half` is half a unit of its last digit;
-- `low` and `high` are the least and the largest figure that round to the printed one. Two figures
-- agree if some values between these do. Figures with one `work` measure the same.
WITH as_printed AS (
    SELECT m.*, c.raw_text AS raw, half_digit(c.raw_text) * c.factor AS half
    FROM microbenchmarks m
    JOIN cells c ON c.result_id = m.microbenchmark_id AND c.column_name = 'value'
)
SELECT
    microbenchmark_id AS result_id, * EXCLUDE (microbenchmark_id),
    canonical_value - half * (1 + 1e-9) AS low,
    canonical_value + half * (1 + 1e-9) AS high,
    dense_rank() OVER (
        ORDER BY
            document_id, chip, chip_count, operation, shape, precision_printed, metric, conditions
    ) AS work
FROM as_printed
