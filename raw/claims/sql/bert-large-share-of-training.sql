-- Tokens that MLPerf BERT of the document's round took, at most 512 a sample, over those of NVIDIA's whole scheme, in
-- percent: Graphcore's closed entries and the official reference at the same batch.
-- The scheme is typed: 7,038 steps of 65,536 sequences at SL128 and 1,564 of 32,768 at SL512, in NVIDIA's README that
-- the chart of SDK 1.4 cites (NVIDIA/DeepLearningExamples, TensorFlow/LanguageModeling/BERT, Pre-training).
WITH scheme AS (SELECT 7038.0 * 65536 * 128 + 1564.0 * 32768 * 512 AS tokens),
taken AS (
    SELECT 1 AS place, platform || ', closed, MLPerf v' || round AS name, samples_to_converge AS samples,
        'mlperf_entries:' || round || '/' || path AS input
    FROM mlperf_entries
    WHERE round = '1.0' AND submitter = 'Graphcore' AND benchmark = 'bert' AND division = 'closed'
    UNION ALL
    SELECT 2, 'reference at batch ' || global_batch_size || ', MLPerf v' || round, rcp_mean,
        'mlperf_rcp:' || round || '/' || benchmark || '/' || global_batch_size
    FROM detail.mlperf_rcp
    WHERE round = '1.0' AND benchmark = 'bert' AND global_batch_size = 3072
)
SELECT
    100 * t.samples * 512 / s.tokens AS value,
    t.name AS baseline,
    printf('100 × %.0f × 512 / %.0f = %.2f %%', t.samples, s.tokens, 100 * t.samples * 512 / s.tokens) AS arithmetic,
    [t.input] AS inputs,
    'tokens of NVIDIA''s scheme, while the claim defines neither its compute nor a whole pre-training' AS shown_only
FROM taken AS t
CROSS JOIN scheme AS s
ORDER BY t.place, t.name
