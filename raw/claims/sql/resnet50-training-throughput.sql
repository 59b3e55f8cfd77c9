-- Every one-GPU A100 training row published by the day of the blog, 2020-12-09, if the claim names no precision; else
-- those of its precision that agree in the framework or in the card, since none has both.
SELECT
    i.throughput / a.throughput AS value,
    a.platform || ', ' || a.framework || ', ' || a.compute_precision || coalesce(' + ' || a.compiler, '') || ', of '
        || a.published_on || '; IPU-M2000 with ' || i.framework || ', SDK ' || i.sdk_version AS baseline,
    printf('%g / %g = %.2f', i.throughput, a.throughput, i.throughput / a.throughput) AS arithmetic
FROM claim AS c
CROSS JOIN results AS i
CROSS JOIN results AS a
WHERE i.document_id = 'graphcore-performance-2023-07-04' AND i.table_name = 'pod_training'
    AND i.platform = 'IPU-M2000' AND i.model = c.model
    AND a.document_id = 'nvidia-a100-comparators' AND a.task = 'training' AND a.chip_count = 1 AND a.model = c.model
    AND (
        (coalesce(c.precision, '') NOT LIKE '%(A100)%' AND a.published_on <= DATE '2020-12-09')
        OR (
            c.precision LIKE '%' || a.compute_precision || ' (A100)%'
            AND (
                c.framework LIKE '%' || regexp_replace(a.framework, '\d$', '') || ' (A100)%'
                OR c.baseline LIKE '%' || a.chip || '%'
            )
        )
    )
ORDER BY
    i.framework DESC, a.published_on, a.framework DESC, a.compute_precision DESC, a.compiler NULLS FIRST, a.result_id,
    i.result_id
