-- The lowest and highest figures of the measured rows of the set-up of a run.
WITH same AS (
    SELECT p.run, r.throughput, r.latency_ms, coalesce(r.basis, 'not stated') AS basis
    FROM pairs p
    JOIN theirs r USING (result_id)
    WHERE p.is_same AND p.obstacle IS NULL AND r.is_evidence
),
latencies AS (
    SELECT run, basis, count(*) AS rows, min(latency_ms) AS low, max(latency_ms) AS high
    FROM same
    WHERE latency_ms > 0
    GROUP BY ALL
)
SELECT
    m.run, {
        'rows': count(s.throughput), 'throughput_low': min(s.throughput),
        'throughput_high': max(s.throughput),
        'latency_ms': if(m.latency_ms IS NULL, NULL, ARRAY(
            SELECT {'basis': basis, 'rows': rows, 'low': low, 'high': high}
            FROM latencies l WHERE l.run = m.run ORDER BY basis
        ))
    } AS peers
FROM ours m
LEFT JOIN same s USING (run)
GROUP BY m.run, m.latency_ms
