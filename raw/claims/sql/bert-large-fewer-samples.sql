-- Share of samples that the recipe behind the two claims must have spared: one less the speed-up by throughput
-- under SDK 2.4.0 over the speed-up of SDK 1.4 times the later gain; by phase and over both phases.
-- Steps are typed: 7,038 of phase 1 and 1,564 of phase 2 in NVIDIA's README that the chart's notes cite
-- (NVIDIA/DeepLearningExamples, TensorFlow/LanguageModeling/BERT, Pre-training); a step's batch is that row's own.
WITH phases AS (
    SELECT
        CASE WHEN a.variant LIKE '%SL128' THEN 1 ELSE 2 END AS phase,
        ['results:' || i.result_id, 'results:' || a.result_id] AS inputs,
        i.throughput AS ipu, a.throughput AS gpu, i.variant AS ipu_variant, a.variant AS gpu_variant, a.platform,
        a.batch_size * CASE WHEN a.variant LIKE '%SL128' THEN 7038 ELSE 1564 END AS sequences
    FROM results AS i
    JOIN results AS a ON i.variant LIKE CASE WHEN a.variant LIKE '%SL128' THEN 'Ph1%' ELSE 'Ph2%' END
    WHERE i.document_id = 'graphcore-performance-2023-07-04' AND i.table_name = 'pod_training'
        AND i.platform = 'IPU-POD64' AND i.model_printed = 'BERT-Large' AND i.framework = 'PopART'
        AND a.document_id = 'nvidia-a100-comparators' AND a.task = 'training'
        AND a.model_printed = 'BERT-Large' AND a.platform = '8x A100-40GB (DGX A100)' AND a.precision_printed = 'mixed'
),
claimed AS (
    SELECT
        old.value AS speedup, gain.value AS gain, ['claims:' || old.claim_id, 'claims:' || gain.claim_id] AS inputs
    FROM printed AS old
    CROSS JOIN printed AS gain
    WHERE old.claim_id = 'sdk14-bert-large-training-time' AND gain.claim_id = 'mlperf2021-sdk-bert'
),
reached AS (
    SELECT phase, ipu / gpu AS speedup, 'phase ' || phase || ', ' || gpu_variant || ' and ' || ipu_variant AS name,
        inputs
    FROM phases
    UNION ALL
    SELECT 3, sum(sequences / gpu) / sum(sequences / ipu), 'both phases of NVIDIA''s scheme, 7,038 and 1,564 steps',
        flatten(list(inputs ORDER BY phase))
    FROM phases
)
SELECT
    1 - r.speedup / (c.speedup * c.gain) AS value,
    'share of fewer samples; ' || r.name AS baseline,
    printf(
        '1 - %.2f / (%g × %g) = 1 - %.2f / %.2f = %.2f', r.speedup, c.speedup, c.gain, r.speedup, c.speedup * c.gain,
        1 - r.speedup / (c.speedup * c.gain)
    ) AS arithmetic,
    r.inputs || c.inputs AS inputs
FROM reached AS r
CROSS JOIN claimed AS c
ORDER BY r.phase
