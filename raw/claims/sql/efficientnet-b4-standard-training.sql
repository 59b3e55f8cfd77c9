-- The chart's two IPU bars over its GPU bar. NVIDIA published no A100 row of this network before the claims.
SELECT
    i.value / g.value AS value,
    'the chart''s GPU bar, FP32' AS baseline,
    printf('%g / %g = %.2f', i.value, g.value, i.value / g.value) AS arithmetic,
    ['claims:' || i.claim_id, 'claims:' || g.claim_id] AS inputs
FROM printed AS i
CROSS JOIN printed AS g
WHERE i.claim_id IN ('sdk14-efficientnet-b4-training-m2000-a', 'sdk14-efficientnet-b4-training-m2000-b')
    AND g.claim_id = 'sdk14-efficientnet-b4-training-gpu'
ORDER BY i.value, i.claim_id
