-- Rates of BERT-Base at 256 tokens, fp16 and batch 16 in the files of PopRT, over the lowest of them.
SELECT
    throughput / min(throughput) OVER () AS value, conditions AS baseline,
    printf('%g / %g = %.2f', throughput, min(throughput) OVER (), throughput / min(throughput) OVER ()) AS arithmetic,
    ['results:' || result_id] AS inputs
FROM results
WHERE document_id = 'graphcore-poprt-1.5' AND model_printed = 'BERT-Base' AND variant = 'SL256' AND precision_printed = 'fp16'
    AND batch_size = 16
ORDER BY throughput
