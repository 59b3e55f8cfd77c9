-- The official descriptions of each machine, once each and numbered by round and path: those of entries
-- under its name, and of systems that the vocabulary says are the same machine. An entry without a score
-- has one too.
WITH described AS (
    FROM entries
    UNION ALL BY NAME
    SELECT * REPLACE (k.platform AS platform)
    FROM entries
    JOIN (SELECT platform, unnest(described_as) AS platform_printed FROM known_platform) k
        USING (platform_printed)
)
SELECT
    *,
    dense_rank() OVER (PARTITION BY platform ORDER BY order_round(round), system_path) AS number
FROM described
WHERE platform IS NOT NULL
QUALIFY row_number() OVER (PARTITION BY platform, round, system_path ORDER BY path) = 1
