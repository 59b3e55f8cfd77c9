-- The dense peaks of each chip by type, in 10¹² operations per second: the highest that a source
-- states. Certain is what the maker states, or two others alike.
SELECT
    c.chip, s.type, max(s.tflops) AS tflops,
    bool_or(s.is_certain) AS is_certain,
    -- of equal peaks, the usual type first
    coalesce(list_position(['fp32', 'tf32', 'fp16', 'bf16', 'fp8', 'int8'], s.type), 9) AS position
FROM chips c
JOIN stated_peaks s ON s.chip IN (c.chip, c.accelerator)
GROUP BY c.chip, s.type
