-- The peak of one chip of a machine at each precision as printed, where a source states it.
WITH stated AS (
    UNPIVOT (
        SELECT
            platform, peak_fp16_tflops, peak_fp32_tflops, peak_tf32_tflops, peak_fp8_tflops,
            peak_int8_tops
        FROM platforms
    )
    ON * EXCLUDE (platform)
    INTO NAME bound VALUE tflops
)
SELECT platform, precision_printed, tflops
FROM stated
JOIN rules.bounds USING (bound)
