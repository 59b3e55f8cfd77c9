-- What the page shows of two names: the tests that they share, the MLPerf times of like machines,
-- and where they share none, the condition that fails and other machines with the chip that do.
WITH official AS (  -- of one round: those of the same publishers, then the latest, first
    SELECT
        p.left_name, p.right_name, p.ratio, p.left_conditions['mlperf_round'] AS round,
        list_contains(a.publishers, p.left_conditions['submitter'])::INTEGER
            + list_contains(b.publishers, p.right_conditions['submitter'])::INTEGER AS own
    FROM pairs p
    JOIN chosen c ON p.is_like
    JOIN machines a ON a.name = c.a
    JOIN machines b ON b.name = c.b
    WHERE p.left_conditions['mlperf_round'] = p.right_conditions['mlperf_round']
    ORDER BY own DESC, order_round(round) DESC, p.right_speed DESC, p.left_name, p.right_name
    LIMIT 3
),
models AS (
    SELECT model
    FROM rows
    WHERE (is_a OR is_b) AND model IS NOT NULL
    GROUP BY model
    HAVING bool_or(is_a) AND bool_or(is_b)
),
siblings AS (
    SELECT DISTINCT other.name
    FROM chosen c
    JOIN machines b ON b.name = c.b
    JOIN machines m ON m.chip = b.chip
    JOIN rows other ON other.name = m.name
    JOIN rows own ON own.measure = other.measure AND own.test = other.test
    WHERE c.compared = 'platform' AND NOT EXISTS (FROM pairs WHERE NOT is_like)
        AND own.is_a AND own.comparable AND own.is_asked
        AND other.comparable AND NOT other.is_a AND NOT other.is_b
)
SELECT
    (SELECT list(name ORDER BY tests DESC, name) FROM names) AS names,
    c.a, c.b, coalesce(c.partners, []) AS partners,
    (SELECT list(model ORDER BY model) FROM models) AS models,
    (
        SELECT list({
            'measure': measure, 'title': title, 'higher_is_better': higher_is_better,
            'left': left_id, 'right': right_id, 'ratio': ratio, 'ratio_per_chip': ratio_per_chip,
            'differences': differences
        } ORDER BY position, place)
        FROM pairs
        WHERE NOT is_like
    ) AS pairs,
    (SELECT list(official) FROM official) AS official,
    (SELECT list(gaps ORDER BY model) FROM gaps) AS gaps,
    (SELECT list(name ORDER BY name) FROM siblings) AS siblings,
    (
        SELECT count(DISTINCT result_id) FROM rows WHERE (is_a OR is_b) AND is_asked AND NOT usable
    ) AS unusable
FROM chosen c
