-- List price of the claim's subject over that of its baseline, each as its chips' share of the system whose price the
-- document gives: an IPU-POD16 and a DGX A100. Both prices are claims of the document, and no other source has them.
SELECT
    (pod_price.value * s.chip_count / pod.chip_count)
        / (dgx_price.value * b.chip_count / dgx.chip_count) AS value,
    dgx.platform || ' and ' || pod.platform AS baseline,
    printf(
        '(%.0f × %d / %d) / (%.0f × %d / %d) = %.4f', pod_price.value, s.chip_count, pod.chip_count,
        dgx_price.value, b.chip_count, dgx.chip_count,
        (pod_price.value * s.chip_count / pod.chip_count) / (dgx_price.value * b.chip_count / dgx.chip_count)
    ) AS arithmetic,
    [
        'platforms:' || s.platform, 'platforms:' || b.platform, 'claims:' || pod_price.claim_id,
        'claims:' || dgx_price.claim_id
    ] AS inputs
FROM claim AS c
JOIN platforms AS s ON s.platform = c.subject
JOIN platforms AS b ON b.platform = c.baseline
CROSS JOIN platforms AS pod
CROSS JOIN platforms AS dgx
CROSS JOIN printed AS pod_price
CROSS JOIN printed AS dgx_price
WHERE pod_price.claim_id = 'mlperf2021-pod16-price' AND dgx_price.claim_id = 'mlperf2021-dgx-price'
    AND pod.platform = 'IPU-POD16' AND dgx.platform = '8x A100-80GB (DGX A100)'
ORDER BY s.platform
