-- The table `runs`: each with the origin of its points; null for a run whose points were all
-- quarantined.
SELECT *, (SELECT any_value(origin) FROM results WHERE results.run_id = r.run_id) AS origin
FROM read.runs r
