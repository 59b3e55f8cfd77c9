-- The logs of entries: whether another entry has the same bytes, and which give a run of their own. A log
-- that is in a folder twice is one run.
SELECT
    *,
    count(DISTINCT (round, path)) OVER (PARTITION BY sha256) > 1 AS is_shared,
    counted AND 1 = row_number() OVER (
        PARTITION BY round, path, counted, coalesce(nullif(sha256, ''), file)
        ORDER BY file DESC
    ) AS is_used
FROM mlperf_runs
