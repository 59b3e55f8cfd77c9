-- The peak of one chip of a machine at each precision as printed, where a source states it.
WITH stated AS (
    UNPIVOT (SELECT platform, COLUMNS('^peak_.*ops$') FROM platforms)
    ON * EXCLUDE (platform)
    INTO NAME bound VALUE tflops
)
SELECT platform, precision_printed, tflops
FROM stated
JOIN rules.bounds USING (bound)
