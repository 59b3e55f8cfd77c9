-- IPU-M2000 over one A100 in training: every row published by the day of the blog, 2020-12-09, and the nearest later one.
-- Of the rows with the precision that the claim names, those that agree with it in framework and card count, or in one of
-- the two if none agrees in both. The others are shown.
WITH gpus AS (
    SELECT
        a.*,
        replace(a.chip, '-SXM', '') AS card,  -- no claim says the form
        meets_condition(c.precision_printed, 'A100', a.precision_printed) AS same_precision,
        CASE
            WHEN same_precision
                THEN meets_condition(c.framework, 'A100', family(a.framework))::INTEGER
                    + contains(c.meant_baseline, card)::INTEGER
        END AS agrees
    FROM claim AS c
    JOIN results AS a ON a.model_printed = CASE WHEN c.model_printed = 'ResNeXt101' THEN 'ResNeXt101-32x4d' ELSE c.model_printed END
    WHERE a.document_id = 'nvidia-a100-comparators' AND a.task = 'training' AND a.chip_count = 1
    QUALIFY a.published_on <= DATE '2020-12-09' OR agrees = max(agrees) OVER ()
)
SELECT
    i.throughput / a.throughput AS value,
    a.platform || ', ' || a.framework || ', ' || a.precision_printed || if(a.conditions = 'compiled by XLA', ' + XLA', '')
        || ', of ' || a.published_on || '; IPU-M2000 with ' || i.framework || ', SDK ' || i.sdk_version AS baseline,
    printf('%g / %g = %.2f', i.throughput, a.throughput, i.throughput / a.throughput) AS arithmetic,
    ['results:' || i.result_id, 'results:' || a.result_id] AS inputs,
    CASE
        WHEN a.agrees < max(a.agrees) OVER () THEN 'another card or framework of the A100 than the claim names'
    END AS shown_only,
    CASE
        WHEN a.agrees < 2 THEN a.framework || ' on ' || a.card || ' for the row that the claim names, which no source at hand has'
    END AS stand_in
FROM claim AS c
CROSS JOIN results AS i
CROSS JOIN gpus AS a
WHERE i.document_id = 'graphcore-performance-2023-07-04' AND i.table_name = 'pod_training'
    AND i.platform = 'IPU-M2000' AND i.model_printed = c.model_printed
ORDER BY
    i.framework DESC, a.published_on, a.framework DESC, a.precision_printed DESC, a.conditions NULLS FIRST, a.result_id,
    i.result_id
