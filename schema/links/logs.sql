-- The logs of entries: whether another entry has the same bytes, and which give a run of their own. A log
-- that is in a folder twice is one run.
SELECT
    *,
    min((round, path)) OVER same <> max((round, path)) OVER same AS is_shared,
    counted AND 1 = row_number() OVER (
        PARTITION BY round, path, counted, coalesce(nullif(sha256, ''), file)
        ORDER BY file DESC
    ) AS is_used
FROM mlperf_runs
WINDOW same AS (PARTITION BY sha256)
