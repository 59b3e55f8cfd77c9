-- The flags of quality rules on the hand-in. R01 takes every latency for that of a batch, as pages
-- call it; a hand-in may state that of an item.
SELECT
    rule, message, row_number,
    if(
        rule = 'R01' AND latency_basis = 'per-item'
            AND throughput * latency_ms / 1000 >= {MIN_BATCHES_IN_FLIGHT},
        'info', severity
    ) AS severity
FROM own_flags
JOIN mine USING (result_id)
