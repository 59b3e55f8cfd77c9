-- The lowest and highest figures of the measured rows of the set-up of a run.
WITH same AS (
    SELECT p.run, r.throughput, r.latency_ms, coalesce(r.basis, 'not stated') AS basis
    FROM pairs p
    JOIN theirs r USING (result_id)
    WHERE p.is_same AND p.obstacle IS NULL AND r.party NOT IN ('emulated', 'submitted')
),
latencies AS (
    SELECT run, basis, count(*) AS rows, min(latency_ms) AS low, max(latency_ms) AS high
    FROM same
    WHERE latency_ms > 0
    GROUP BY ALL
),
by_run AS (
    SELECT
        run,
        list({'basis': basis, 'rows': rows, 'low': low, 'high': high} ORDER BY basis) AS latencies
    FROM latencies
    GROUP BY run
),
throughputs AS (
    SELECT run, count(*) AS rows, min(throughput) AS low, max(throughput) AS high
    FROM same
    WHERE throughput > 0
    GROUP BY run
)
SELECT
    run, coalesce(t.rows, 0) AS rows, t.low AS throughput_low, t.high AS throughput_high,
    if(m.latency_ms IS NULL, NULL, coalesce(l.latencies, [])) AS latency_ms
FROM ours m
LEFT JOIN throughputs t USING (run)
LEFT JOIN by_run l USING (run)
