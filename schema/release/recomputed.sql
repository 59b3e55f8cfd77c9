-- Each recomputed figure with its statement and the rows that it read, by table and key.
WITH read AS (
    SELECT claim_id, contradiction_id, position, list({'name': table_name, 'key': key}) AS rows
    FROM detail.recomputation_inputs
    GROUP BY ALL
)
SELECT
    'recomputed' AS kind, 'recomputations.csv' AS stated,
    {'claim_id': r.claim_id, 'position': r.position}::JSON AS key, 'value' AS "in",
    to_json(r.value) AS figure, c.recomputation_sql AS statement, i.rows
FROM recomputations r
JOIN claims c USING (claim_id)
JOIN read i ON i.claim_id = r.claim_id AND i.position = r.position
UNION ALL
SELECT
    'recomputed', 'contradictions.csv', {'contradiction_id': c.contradiction_id}::JSON,
    'recomputed', to_json(c.recomputed), c.recomputation_sql, flatten(list(i.rows))
FROM contradictions c
JOIN read i USING (contradiction_id)
WHERE c.recomputed IS NOT NULL
GROUP BY ALL
ORDER BY stated, key->>'claim_id', (key->>'position')::INTEGER, key->>'contradiction_id'
