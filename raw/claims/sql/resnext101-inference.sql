-- Smallest batch of each, 4 and 1, against every A100 row: latency over latency where the claim speaks of it, else
-- throughput over throughput. The claim is on synthetic data: the baseline says where the page's data is from the host.
WITH compared AS (
    SELECT
        a.throughput AS a100, i.result_id AS ipu_id, a.result_id AS gpu_id, i.framework,
        CASE WHEN c.metric = 'latency' THEN a.latency_ms ELSE i.throughput END AS numerator,
        CASE WHEN c.metric = 'latency' THEN i.latency_ms ELSE a.throughput END AS denominator,
        a.platform || ', ' || a.framework || ', ' || a.precision_printed || if(a.conditions = 'compiled by XLA', ' + XLA', '')
            || ', batch ' || a.batch_size || '; IPU-M2000 with ' || i.framework || ', SDK ' || i.sdk_version || ', batch ' || i.batch_size
            || CASE WHEN EXISTS (
                SELECT 1 FROM flags AS f WHERE f.result_id = i.result_id AND f.rule = 'R20' AND f.severity = 'warn'
            ) THEN ' (ran 32x8d, R20)' ELSE '' END
            || CASE
                WHEN c.dataset_printed = 'synthetic' AND i.dataset_printed ILIKE '%host-generated%' THEN ', data from the host' ELSE ''
            END
            AS baseline
    FROM claim AS c
    CROSS JOIN results AS i
    CROSS JOIN results AS a
    WHERE i.document_id = 'graphcore-performance-2023-07-04' AND i.table_name = 'pod_inference'
        AND i.platform = 'IPU-M2000' AND i.model_printed = 'ResNeXt101' AND i.batch_size = 4
        AND a.document_id = 'nvidia-a100-comparators' AND a.task = 'inference'
        AND a.model_printed = 'ResNeXt101-32x4d' AND a.batch_size = 1
)
SELECT
    numerator / denominator AS value, baseline,
    printf('%g / %g = %.2f', numerator, denominator, numerator / denominator) AS arithmetic,
    ['results:' || ipu_id, 'results:' || gpu_id] AS inputs
FROM compared
ORDER BY framework DESC, a100, gpu_id, ipu_id
