-- Each recomputed figure with its statement and the rows that it read, by table and key.
WITH read AS (
    SELECT claim_id, contradiction_id, position, list({'name': table_name, 'key': key}) AS inputs
    FROM detail.recomputation_inputs
    GROUP BY ALL
)
SELECT
    'recomputations' AS stated_by, {'claim_id': r.claim_id, 'position': r.position}::JSON AS key,
    'value' AS stated_in, to_json(r.value) AS figure, c.recomputation_sql AS statement, i.inputs
FROM recomputations r
JOIN claims c USING (claim_id)
JOIN read i ON i.claim_id = r.claim_id AND i.position = r.position
UNION ALL
SELECT
    'contradictions', {'contradiction_id': c.contradiction_id}::JSON,
    'recomputed', to_json(c.recomputed), c.recomputation_sql, flatten(list(i.inputs))
FROM contradictions c
JOIN read i USING (contradiction_id)
WHERE c.recomputed IS NOT NULL
GROUP BY ALL
ORDER BY 1, 2::VARCHAR
