-- The table `models`: the networks of the vocabulary, those that `results.model` tells apart under a
-- printed name, those of MLPerf's benchmarks, and each printed name that has no entry.
WITH told_apart AS (
    SELECT *, row_number() OVER () AS position
    FROM (VALUES
        {derived.model: model_printed, model, source},
        {identities.identity: model_printed, model, source}
    ) AS known (model_printed, model, source)
),
candidates AS (
    SELECT 1 AS priority, * FROM known_model
    UNION ALL BY NAME
    SELECT 2 AS priority, t.position, t.model, n.item, t.source
    FROM told_apart t
    LEFT JOIN known_model n ON n.model = t.model_printed
    UNION ALL BY NAME
    SELECT 3 AS priority, model, 'detail.mlperf_comparability' AS source
    FROM mlperf_entries
    WHERE model IS NOT NULL
    UNION ALL BY NAME
    SELECT 4 AS priority, model_printed AS model, 'printed name, not in the vocabulary' AS source
    FROM results
)
SELECT * EXCLUDE (priority, position)
FROM candidates
QUALIFY row_number() OVER (PARTITION BY model ORDER BY priority, position) = 1
