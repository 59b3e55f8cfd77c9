-- The nearest row of each party with all that is said of it.
WITH figures AS (
    SELECT
        run, match, any_value(sentence) FILTER (is_first) AS description,
        any_value(per_chip) FILTER (is_first) AS ratio_per_chip,
        list({
            'figure': figure, 'ours': ours, 'theirs': theirs, 'ratio': ratio, 'low': low,
            'high': high, 'unit': unit
        } ORDER BY position) AS ratios
    FROM ratios
    GROUP BY run, match
),
refused AS (
    SELECT run, result_id, list(
        {'figure': figure, 'reason': obstacle.reason} ORDER BY position
    ) AS not_compared
    FROM shared_figures
    WHERE obstacle IS NOT NULL
    GROUP BY run, result_id
)
SELECT
    n.run, n.position, n.party AS "group", n.title AS group_name, f.description, n.distance,
    c AS row, f.ratios, coalesce(x.not_compared, []) AS not_compared,
    coalesce(d.differences, []) AS differences, f.ratio_per_chip
FROM nearest n
JOIN figures f ON f.run = n.run AND f.match = n.position
JOIN candidates c USING (result_id)
LEFT JOIN refused x ON x.run = n.run AND x.result_id = n.result_id
LEFT JOIN differences d ON d.run = n.run AND d.match = n.position
