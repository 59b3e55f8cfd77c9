-- Throughput of IPU-POD64 over that of one DGX A100 in each phase, and over both phases of NVIDIA's scheme. A claim of
-- the time to train is of both phases: each alone is shown.
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
reached AS (
    SELECT
        phase, ipu / gpu AS speedup, printf('%g / %g', ipu, gpu) AS quotient, platform,
        'phase ' || phase || ', ' || gpu_variant || '; IPU-POD64 ' || ipu_variant AS name, inputs
    FROM phases
    UNION ALL
    SELECT
        3, sum(sequences / gpu) / sum(sequences / ipu),
        printf('%.1f h / %.1f h', sum(sequences / gpu) / 3600, sum(sequences / ipu) / 3600), min(platform),
        'both phases of NVIDIA''s scheme, 7,038 and 1,564 steps', flatten(list(inputs ORDER BY phase))
    FROM phases
    HAVING count(*) > 0
)
SELECT
    speedup AS value, platform || ', ' || name AS baseline, printf('%s = %.2f', quotient, speedup) AS arithmetic,
    inputs,
    CASE
        WHEN c.metric = 'time to train' AND phase < 3 THEN 'one phase alone; the claim is of the whole training'
    END AS shown_only
FROM reached
CROSS JOIN claim AS c
ORDER BY phase
