-- Entries that share logs are one piece of evidence, so each pair is listed once.
SELECT a.round, a.path, b.round AS other_round, b.path AS other_path, count(*) AS logs
FROM mlperf_runs a
JOIN mlperf_runs b ON a.sha256 = b.sha256 AND (a.round, a.path) < (b.round, b.path)
WHERE a.copies > 1
GROUP BY ALL
ORDER BY a.round, a.path, other_round, other_path
