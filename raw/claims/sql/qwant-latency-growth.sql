-- Growth of the latency of the paper's own table from its smallest to its largest batch, in both readings: of the latency, or
-- of what a straight line through the six rows leaves above its fixed part.
WITH bounds AS (
    SELECT
        min(batch_size) AS small, max(batch_size) AS large,
        min_by(latency_ms, batch_size) AS low, max_by(latency_ms, batch_size) AS high,
        regr_intercept(latency_ms, batch_size) AS fixed,
        list('results:' || result_id ORDER BY batch_size) AS inputs
    FROM results
    WHERE document_id = 'qwant-c2-report-2020-02-28' AND table_name = 'qwant_c2'
)
SELECT
    high / low AS value,
    'the paper''s own table, batch ' || small || ' to ' || large AS baseline,
    printf('%g / %g = %.2f', high, low, high / low) AS arithmetic, inputs, 'growth in proportion' AS reading
FROM bounds
UNION ALL
SELECT
    (high - fixed) / (low - fixed), 'the same, above the fixed part of a straight line',
    printf('(%g - %.2f) / (%g - %.2f) = %.2f', high, fixed, low, fixed, (high - fixed) / (low - fixed)), inputs,
    'growth along a straight line'
FROM bounds
ORDER BY value
