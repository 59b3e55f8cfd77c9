-- Dense TFLOPS at 16 bits of 64 multiply-accumulates a cycle and tile at the clock that Peng et al. state, beside their peak.
SELECT
    64 * 2 * 1472 * clock.value / 1000 AS value,
    'printed as a peak with sparsity' AS baseline,
    printf('64 x 2 x 1472 tiles x %g GHz = %.1f; printed %g', clock.value, 64 * 2 * 1472 * clock.value / 1000, peak.value) AS arithmetic,
    ['facts:' || clock.fact_id, 'facts:' || peak.fact_id] AS inputs,
    NULL::VARCHAR AS relation
FROM detail.facts AS clock
JOIN detail.facts AS peak ON peak.fact_id = 'peng-gc200-peak-fp16'
WHERE clock.fact_id = 'peng-gc200-clock'
