-- One-GPU A100 training rows: every one published by the day of the blog, 2020-12-09, if the claim names no precision;
-- else those of its precision that agree in framework and card, or in one of the two if none agrees in both.
WITH gpus AS (
    SELECT
        a.*,
        (c.framework LIKE '%' || regexp_replace(a.framework, '\d$', '') || ' (A100)%')::INTEGER
            + (c.baseline LIKE '%' || a.chip || '%')::INTEGER AS agrees
    FROM claim AS c
    JOIN results AS a ON a.model = CASE WHEN c.model = 'ResNeXt101' THEN 'ResNeXt101-32x4d' ELSE c.model END
    WHERE a.document_id = 'nvidia-a100-comparators' AND a.task = 'training' AND a.chip_count = 1
        AND CASE
            WHEN c.precision LIKE '%(A100)%' THEN c.precision LIKE '%' || a.compute_precision || ' (A100)%'
            ELSE a.published_on <= DATE '2020-12-09'
        END
    QUALIFY coalesce(c.precision, '') NOT LIKE '%(A100)%' OR (agrees > 0 AND agrees = max(agrees) OVER ())
)
SELECT
    i.throughput / a.throughput AS value,
    a.platform || ', ' || a.framework || ', ' || a.compute_precision || coalesce(' + ' || a.compiler, '') || ', of '
        || a.published_on || '; IPU-M2000 with ' || i.framework || ', SDK ' || i.sdk_version AS baseline,
    printf('%g / %g = %.2f', i.throughput, a.throughput, i.throughput / a.throughput) AS arithmetic
FROM claim AS c
CROSS JOIN results AS i
CROSS JOIN gpus AS a
WHERE i.document_id = 'graphcore-performance-2023-07-04' AND i.table_name = 'pod_training'
    AND i.platform = 'IPU-M2000' AND i.model = c.model
ORDER BY
    i.framework DESC, a.published_on, a.framework DESC, a.compute_precision DESC, a.compiler NULLS FIRST, a.result_id,
    i.result_id
