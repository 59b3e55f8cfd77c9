-- What the official record says that contradicts itself: a system with two ids, a score that its runs
-- do not give, and runs, printed minutes and ids without an entry.
WITH of_entry AS (
    SELECT
        round,
        path,
        count(*) AS n_runs,
        count(*) FILTER (counted) AS n_success,
        list(minutes) FILTER (counted) AS minutes
    FROM mlperf_runs
    GROUP BY round, path
),
scored AS (
    SELECT
        e.*,
        coalesce(r.n_runs, 0) AS runs_read,
        coalesce(r.n_success, 0) AS runs_counted,
        CASE
            WHEN e.logs_missing = 0
                THEN e.scaling_factor * olympic_mean(
                    coalesce(r.minutes, []),
                    runs_read - runs_counted,
                    find_drop(e.benchmark)
                )
        END AS score
    FROM read.mlperf_entries e
    LEFT JOIN of_entry r USING (round, path)
),
judged AS (
    SELECT
        document_id,
        path AS place,
        CASE
            WHEN n_runs > 0 AND runs_read = 0
                THEN format('the entry says {} runs, and no document of raw/ has one', n_runs)
            WHEN runs_read <> n_runs OR runs_counted <> n_success
                THEN format(
                    '{} runs, {} of them counted; the entry says {} and {}',
                    runs_read, runs_counted, n_runs, n_success
                )
            WHEN score IS DISTINCT FROM minutes
                THEN format(
                    'its runs give {} minutes, the entry says {}',
                    coalesce(score::VARCHAR, 'None'),
                    coalesce(minutes::VARCHAR, 'None')
                )
        END AS message
    FROM scored
)
SELECT
    document_id,
    NULL AS place,
    format(
        '{} has two ids, {} and {}',
        system_path,
        lag(mlperf_id) OVER systems,
        mlperf_id
    ) AS message
FROM read.mlperf_ids
WINDOW systems AS (PARTITION BY round, system_path ORDER BY document_id, row_number)
QUALIFY row_number() OVER systems = 2

UNION ALL
FROM judged
WHERE message IS NOT NULL

UNION ALL
SELECT document_id, NULL, format('runs of {}, round {}, have no entry', path, round)
FROM mlperf_runs
ANTI JOIN read.mlperf_entries USING (round, path)

UNION ALL
SELECT document_id, NULL, format('has minutes of {}, round {}, which has no entry', path, round)
FROM read.mlperf_published
ANTI JOIN read.mlperf_entries USING (round, path)

UNION ALL
SELECT
    i.document_id,
    NULL,
    format('{} names {}, round {}, which has no entry', i.mlperf_id, i.system_path, i.round)
FROM read.mlperf_ids i
ANTI JOIN read.mlperf_entries e
    ON e.round = i.round
    AND parent_folder(e.path) = i.system_path
