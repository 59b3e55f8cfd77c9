-- Sequences in one step of the README's first job on four GC200: rate x time of a step, beside the printed batch.
SELECT
    throughput * regexp_extract(conditions, 'step of ([\d.]+) s', 1)::DOUBLE AS value,
    'printed batch ' || batch_size AS baseline,
    printf('%g x %s s = %.1f', throughput, regexp_extract(conditions, 'step of ([\d.]+) s', 1),
        throughput * regexp_extract(conditions, 'step of ([\d.]+) s', 1)::DOUBLE) AS arithmetic,
    ['results:' || result_id] AS inputs,
    NULL::VARCHAR AS relation
FROM results
WHERE document_id = 'independent-caraml-readme' AND model_printed = 'GPT-117M' AND batch_size = 16
