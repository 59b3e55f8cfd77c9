-- ResNet-50 rate of the document's own round on IPU-POD16, evaluation and set-up of the timed part included, over what
-- four IPU-M2000 would run under SDK 1.4 if the chart's factor held against each A100 row that fits the chart.
SELECT
    e.rate / (4 * old.value * a.throughput) AS value,
    a.platform || ', ' || a.framework || ', mixed' || if(a.conditions = 'compiled by XLA', ' + XLA', '') AS baseline,
    printf(
        '%.0f / (4 × %g × %g) = %.2f', e.rate, old.value, a.throughput, e.rate / (4 * old.value * a.throughput)
    ) AS arithmetic,
    ['mlperf_entries:' || e.round || '/' || e.path, 'claims:' || old.claim_id, 'results:' || a.result_id] AS inputs
FROM (
    SELECT round, path, samples_to_converge / (60 * minutes) AS rate
    FROM mlperf_entries
    WHERE round = '1.0' AND submitter = 'Graphcore' AND benchmark = 'resnet' AND platform = 'IPU-POD16'
) AS e
CROSS JOIN printed AS old
CROSS JOIN results AS a
WHERE old.claim_id = 'sdk14-resnet50-training-throughput'
    AND a.document_id = 'nvidia-a100-comparators' AND a.task = 'training' AND a.chip_count = 1
    AND a.model_printed = 'ResNet-50 v1.5' AND a.precision_printed = 'mixed'
    AND (a.framework = 'TensorFlow1' OR a.chip = 'A100-SXM-80GB')
ORDER BY a.throughput, a.result_id
