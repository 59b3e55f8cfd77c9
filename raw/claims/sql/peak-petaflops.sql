-- fp16 peak of the claim's machine: that of its chip, from the datasheet that platforms names, times its chips.
SELECT
    p.chip_count * p.peak_fp16_tflops / 1000 AS value,
    p.platform || ', fp16' AS baseline,
    printf(
        '%d × %g TFLOP/s / 1000 = %.3f', p.chip_count, p.peak_fp16_tflops, p.chip_count * p.peak_fp16_tflops / 1000
    ) AS arithmetic,
    ['platforms:' || p.platform] AS inputs
FROM claim AS c
JOIN platforms AS p ON p.platform = c.subject
ORDER BY p.platform
