-- Tokens per second of the two H100 of CARAML, figure 2, at each batch.
SELECT
    w.throughput / j.throughput AS value,
    regexp_extract(w.conditions, 'global batch \d+') AS baseline,
    printf('%g / %g = %.2f', w.throughput, j.throughput, w.throughput / j.throughput) AS arithmetic,
    ['results:' || w.result_id, 'results:' || j.result_id] AS inputs,
    NULL::VARCHAR AS relation
FROM results AS w
JOIN results AS j ON j.document_id = w.document_id AND j.model_printed = w.model_printed AND j.conditions = w.conditions
WHERE w.document_id = 'independent-caraml-2024' AND w.model_printed = 'GPT-800M'
    AND w.chip = 'H100-SXM-94GB' AND j.chip = 'H100-PCIe-80GB'
ORDER BY regexp_extract(w.conditions, '\d+')::INTEGER
