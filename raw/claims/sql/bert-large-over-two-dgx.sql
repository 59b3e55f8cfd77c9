-- The chart's speed-up over one DGX A100 turned into one over two, by the scaling that its notes assume.
SELECT
    one.value / two.value AS value,
    two.subject AS baseline,
    printf('%g / %g = %.2f', one.value, two.value, one.value / two.value) AS arithmetic,
    ['claims:' || one.claim_id, 'claims:' || two.claim_id] AS inputs
FROM printed AS one
CROSS JOIN printed AS two
WHERE one.claim_id = 'sdk14-bert-large-training-time' AND two.claim_id = 'sdk14-bert-large-training-linear-scaling'
ORDER BY two.claim_id
