-- The figures that a run and a row both have: the ratio, with the bounds that the intervals of both
-- give it, and the reason for not comparing this figure, null where it may be compared.
WITH all_figures AS (
    SELECT
        run, result_id, model, item, basis, power_scope, benchmark, platform,
        unnest([
            {'position': 1, 'figure': 'throughput', 'value': throughput,
                'low': throughput_low, 'high': throughput_high},
            {'position': 2, 'figure': 'latency_ms', 'value': latency_ms,
                'low': latency_ms_low, 'high': latency_ms_high},
            {'position': 3, 'figure': 'minutes', 'value': minutes,
                'low': minutes_low, 'high': minutes_high},
            {'position': 4, 'figure': 'efficiency', 'value': efficiency, 'low': NULL, 'high': NULL},
            {'position': 5, 'figure': 'power_w', 'value': power_w, 'low': NULL, 'high': NULL}
        ], recursive := TRUE)
    FROM sides
),
stated AS (  -- a figure without an interval is one of no width
    SELECT * REPLACE (
        if(low > 0 AND high > 0, low, value) AS low, if(low > 0 AND high > 0, high, value) AS high
    )
    FROM all_figures
    WHERE value IS NOT NULL
)
SELECT
    m.run, r.result_id, m.position, m.figure, m.value AS ours, r.value AS theirs,
    m.value / r.value AS ratio,
    m.low < m.high OR r.low < r.high AS has_bounds,
    if(has_bounds, m.low / r.high, NULL) AS low,
    if(has_bounds, m.high / r.low, NULL) AS high,
    name_unit(m.figure, r.item) AS unit,
    CASE
        WHEN m.figure IN ('throughput', 'efficiency') AND (m.item = r.item) IS NOT TRUE THEN
            refuse('item', 'different-items', differ('item', m.item, r.item))
        WHEN m.figure = 'latency_ms' AND NOT is_same_latency(m.basis, r.basis) THEN
            refuse('latency_basis', 'different-latencies',
                differ('what the latency times', m.basis, r.basis))
        WHEN m.figure IN ('efficiency', 'power_w')
            AND (m.power_scope = r.power_scope) IS NOT TRUE THEN
            refuse('power_scope', 'different-power-scopes',
                differ('power scope', m.power_scope, r.power_scope))
        WHEN m.figure = 'minutes' AND (m.benchmark = r.benchmark) IS NOT TRUE THEN
            refuse('benchmark', 'mlperf-with-other', differ('benchmark', m.benchmark, r.benchmark))
    END AS obstacle
FROM stated m
JOIN stated r USING (model, figure)
WHERE m.run IS NOT NULL AND r.run IS NULL
