-- Twice the speed-up per node over one node that NVIDIA prints for four; it prints none for two. The README is the one
-- that the chart's notes cite; mixed precision as in the chart. SL512 doubles its global batch on four nodes.
SELECT
    2 * n.throughput / (n.chip_count / one.chip_count * one.throughput) AS value,
    n.platform || ', ' || n.variant || ', ' || n.precision_printed || ', scaled to two' AS baseline,
    printf(
        '2 × %g / (%d × %g) = %.2f', n.throughput, n.chip_count // one.chip_count, one.throughput,
        2 * n.throughput / (n.chip_count / one.chip_count * one.throughput)
    ) AS arithmetic,
    ['results:' || n.result_id, 'results:' || one.result_id] AS inputs,
    'four machines, scaled to the two of the claim by the share that it speaks of' AS shown_only
FROM claim AS c
JOIN results AS one ON one.platform = c.baseline AND one.model_printed = c.model_printed
JOIN results AS n ON n.model_printed = one.model_printed AND n.variant = one.variant AND n.precision_printed = one.precision_printed
WHERE one.document_id = 'nvidia-a100-comparators' AND n.document_id = one.document_id
    AND one.task = 'training' AND n.task = 'training'
    AND one.precision_printed = c.precision_printed AND n.chip_count = 4 * one.chip_count
ORDER BY n.variant, n.result_id
