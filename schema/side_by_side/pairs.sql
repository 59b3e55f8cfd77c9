-- One pair of figures for each test that two names share: of the rows that differ in the fewest
-- conditions, the fastest. `is_like` are MLPerf times of machines with as many of the same chips.
WITH sides AS (
    SELECT a AS left_name, b AS right_name, FALSE AS is_like FROM chosen
    UNION ALL
    SELECT left_machine.name, right_machine.name, TRUE
    FROM chosen c
    JOIN machines a ON a.name = c.a
    JOIN machines b ON b.name = c.b
    JOIN machines left_machine ON left_machine.size = a.size
    JOIN machines right_machine ON right_machine.size = b.size
    WHERE c.compared = 'platform' AND c.model IS NOT NULL
),
conditions AS (  -- that may differ between two figures of a test, with the words for them
    SELECT list({'name': name, 'words': words} ORDER BY position) AS conditions
    FROM (
        VALUES
            (1, 'precision', 'precision'),
            (2, 'framework', 'framework'),
            (3, 'sdk_version', 'SDK'),
            (4, 'batch_size', 'batch'),
            (5, 'chip_count', 'chips'),
            (6, 'latency_scope', 'latency timed on'),
            (7, 'variant', 'variant'),
            (8, 'dataset', 'dataset'),
            (9, 'conditions', 'conditions'),
            (10, 'mlperf_round', 'MLPerf round'),
            (11, 'publisher', 'publisher'),
            (12, 'origin', 'origin')
    ) AS conditions(position, name, words)
),
candidates AS (
    SELECT
        s.left_name, s.right_name, s.is_like, l.compared, l.measure, l.position, l.title,
        l.higher_is_better, l.test, l.place, r.place AS right_place,
        l.result_id AS left_id, r.result_id AS right_id,
        l.speed AS left_speed, r.speed AS right_speed,
        l.speed_per_chip / r.speed_per_chip AS ratio_per_chip,
        own.conditions AS left_conditions, other.conditions AS right_conditions
    FROM sides s
    JOIN rows l ON l.name = s.left_name
    JOIN rows r ON r.name = s.right_name AND r.measure = l.measure AND r.test = l.test
    JOIN texts own ON own.result_id = l.result_id
    JOIN texts other ON other.result_id = r.result_id
    WHERE l.comparable AND r.comparable AND l.is_asked AND s.left_name <> s.right_name
        AND (l.measure = 'minutes' OR NOT s.is_like)
),
stated AS (
    SELECT candidates.*, [
        {
            'name': each.name, 'words': each.words,
            'left': left_conditions[each.name], 'right': right_conditions[each.name]
        }
        FOR each IN conditions.conditions
        IF each.name <> compared
    ] AS sides
    FROM candidates, conditions
)
SELECT
    *, left_speed / right_speed AS ratio,
    [
        side FOR side IN sides
        IF side.left IS DISTINCT FROM side.right
            -- where a latency is timed matters to latencies alone, and if both say so
            AND (side.name <> 'latency_scope' OR measure = 'latency_ms' AND side.left <> side.right)
    ] AS differences
FROM stated
QUALIFY row_number() OVER (
    PARTITION BY is_like, left_name, right_name, measure, test
    ORDER BY len(differences), left_speed DESC, right_speed DESC, place, right_place
) = 1
