-- List price of the claim's subject over that of its baseline, each as its chips' share of the system whose price the
-- document gives: an IPU-POD16 and a DGX A100. Both prices are the document's own; platforms takes them from it.
SELECT
    (pod.list_price_usd * s.chip_count / pod.chip_count)
        / (dgx.list_price_usd * b.chip_count / dgx.chip_count) AS value,
    dgx.platform || ' and ' || pod.platform AS baseline,
    printf(
        '(%.0f × %d / %d) / (%.0f × %d / %d) = %.4f', pod.list_price_usd, s.chip_count, pod.chip_count,
        dgx.list_price_usd, b.chip_count, dgx.chip_count,
        (pod.list_price_usd * s.chip_count / pod.chip_count) / (dgx.list_price_usd * b.chip_count / dgx.chip_count)
    ) AS arithmetic,
    [
        'platforms:' || s.platform, 'platforms:' || b.platform, 'platforms:' || pod.platform, 'platforms:' || dgx.platform
    ] AS inputs
FROM claim AS c
JOIN platforms AS s ON s.platform = c.subject
JOIN platforms AS b ON b.platform = c.baseline
CROSS JOIN platforms AS pod
CROSS JOIN platforms AS dgx
WHERE pod.platform = 'IPU-POD16' AND dgx.platform = '8x A100-80GB (DGX A100)'
ORDER BY s.platform
