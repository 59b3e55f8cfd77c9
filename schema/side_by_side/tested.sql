-- Each result and measure by the name that is compared, of a machine or of an SDK: the figure, the
-- test that it belongs to, and whether it may be compared. It may if the row is usable and the
-- figure is not that of a single item.
WITH sides AS (  -- what is compared, and what must be the same besides the test
    SELECT *
    FROM (
        VALUES ('platform', []::VARCHAR[]), ('sdk_version', ['platform', 'publisher'])
    ) AS sides(compared, same)
)
SELECT
    s.compared, t.conditions[s.compared] AS name,
    m.measure, m.title, m.position, m.higher_is_better,
    r.result_id, r.model, r.publisher, r.chip, r.chip_count, r.usable,
    list_concat(m.test, s.same) AS columns,
    hash([t.conditions[name] FOR name IN columns]) AS test,
    CASE m.measure
        WHEN 'throughput' THEN r.throughput
        WHEN 'latency_ms' THEN r.latency_ms
        ELSE r.time_to_train_s / 60
    END AS figure,
    if(m.higher_is_better, figure, 1 / figure) AS speed,
    if(m.measure = 'throughput', r.throughput_per_chip, NULL) AS speed_per_chip,
    figure IS NOT NULL AND r.usable
        AND NOT (m.measure = 'latency_ms' AND r.latency_basis IS NOT DISTINCT FROM 'per-item')
        AS comparable,
    row_number() OVER (  -- the vendor's rows, then the newest
        ORDER BY r.publisher <> 'Graphcore', r.published_on DESC NULLS LAST, r.document_id,
            r.table_name, r.row_number, r.result_id
    ) AS place
FROM results r
JOIN texts t USING (result_id)
CROSS JOIN sides s
CROSS JOIN measures m
WHERE t.conditions[s.compared] IS NOT NULL
