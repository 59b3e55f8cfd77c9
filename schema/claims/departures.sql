-- Where the rows that a value of a recomputation rests on depart from the conditions that its claim names. A value with any
-- departure is shown and counts for no side: not for the claim where it is high, not against it where it is low.
-- getvariable('result_ids'): the results that the value used. getvariable('has_stand_in'): whether other rows take the place
-- of the claim's baseline; then only the claim's own machine has conditions to keep.
WITH used AS (
    SELECT
        r.result_id, r.framework, r.precision_printed, r.latency_basis, regexp_matches(r.chip, '^(GC\d+|Bow)$') AS is_ipu
    FROM results AS r
    WHERE list_contains(getvariable('result_ids')::VARCHAR[], r.result_id)
),
sides AS (  -- the name that the claim's conditions give to the machine of a row, blank for its own
    SELECT
        u.*, c.framework AS frameworks, c.precision_printed AS precisions, c.metric,
        unnest(if(is_ipu, [''], ['A100', 'GPU'])) AS side
    FROM used AS u
    CROSS JOIN claim AS c
    WHERE u.is_ipu OR NOT getvariable('has_stand_in')::BOOLEAN
)
SELECT 'another framework than the claim names' AS departure
FROM sides
WHERE NOT meets_condition(frameworks, side, family(framework))
UNION
SELECT 'another precision' || if(is_ipu, '', ' of the ' || side) || ' than the claim names'
FROM sides
-- "mixed" is not compared with 16.16: one says how, the other how many bits
WHERE NOT meets_condition(precisions, side, precision_printed)
    AND (NOT is_ipu OR list_bool_and(
        [regexp_matches(part, '^\d+\.\d+') FOR part IN list_conditions(precisions, side)]
    ))
UNION
SELECT if(metric = 'latency',
    'a latency with several batches in flight, more than that of one',
    'a throughput with several batches in flight, which is not that at the lowest latency')
FROM sides
WHERE latency_basis = 'several-in-flight' AND metric IN ('latency', 'throughput at lowest latency')
ORDER BY departure
