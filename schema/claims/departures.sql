-- Where the rows that a value of a recomputation rests on depart from the conditions that its claim names. A value with any
-- departure is shown and counts for no side: not for the claim where it is high, not against it where it is low.
-- $used: each result that a value used, with the claim, the number of the value, and whether other rows take the place of
-- the claim's baseline; then only the claim's own machine has conditions to keep.
WITH used AS (
    SELECT unnest($used, recursive := TRUE)
),
machines AS (
    SELECT u.*, r.*, regexp_matches(r.chip, '^(GC\d+|Bow)$') AS is_ipu
    FROM used AS u
    JOIN results AS r USING (result_id)
),
sides AS (  -- the name that the claim's conditions give to the machine of a row, blank for its own
    SELECT
        m.claim_id, m.position, m.framework, m.precision_printed, m.latency_basis, m.is_ipu,
        c.framework AS frameworks, c.precision_printed AS precisions, c.metric,
        unnest(if(m.is_ipu, [''], ['A100', 'GPU'])) AS side
    FROM machines AS m
    JOIN current_claim AS c USING (claim_id)
    WHERE m.is_ipu OR NOT m.has_stand_in
),
departures AS (
    SELECT claim_id, position, 'another framework than the claim names' AS departure
    FROM sides
    WHERE NOT meets_condition(frameworks, side, family(framework))
    UNION
    SELECT
        claim_id, position,
        'another precision' || if(is_ipu, '', ' of the ' || side) || ' than the claim names'
    FROM sides
    -- "mixed" is not compared with 16.16: one says how, the other how many bits
    WHERE NOT meets_condition(precisions, side, precision_printed)
        AND (NOT is_ipu OR list_bool_and(
            [regexp_matches(part, '^\d+\.\d+') FOR part IN list_conditions(precisions, side)]
        ))
    UNION
    SELECT
        claim_id, position,
        if(metric = 'latency',
            'a latency with several batches in flight, more than that of one',
            'a throughput with several batches in flight, which is not that at the lowest latency')
    FROM sides
    WHERE latency_basis = 'several-in-flight'
        AND metric IN ('latency', 'throughput at lowest latency')
)
SELECT claim_id, position, string_agg(departure, '; ' ORDER BY departure) AS departs
FROM departures
GROUP BY claim_id, position
