-- Phase 2 of BERT Base with PopART and with PyTorch: the Bow Pod16 over the IPU-POD16, in sequences and in tokens a second.
WITH phase_2 AS (
    SELECT
        r.*,
        CAST(regexp_extract(r.variant, 'SL(\d+)', 1) AS INTEGER) AS tokens
    FROM results AS r
    WHERE r.document_id = 'graphcore-performance-2023-07-04' AND r.model_printed = 'BERT-Base'
        AND contains(r.variant, 'Ph2')
)
SELECT
    (b.throughput * b.tokens) / (c.throughput * c.tokens) AS value,
    'tokens a second, ' || b.framework || ', Bow Pod16 over IPU-POD16' AS baseline,
    printf(
        '%g × %d / (%g × %d) = %.3f; of sequences %.3f', b.throughput, b.tokens, c.throughput, c.tokens,
        (b.throughput * b.tokens) / (c.throughput * c.tokens), b.throughput / c.throughput
    ) AS arithmetic,
    ['results:' || b.result_id, 'results:' || c.result_id] AS inputs,
    NULL::VARCHAR AS relation
FROM phase_2 AS b
JOIN phase_2 AS c USING (framework)
WHERE b.platform = 'Bow Pod16' AND c.platform = 'IPU-POD16' AND b.tokens <> c.tokens
ORDER BY b.framework
