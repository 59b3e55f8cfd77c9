-- Throughput times latency of those lines of the packed examples of PopRT where it is not 1, as of a time of the set over its
-- samples, to 1 %.
SELECT
    throughput * latency_ms / 1000 AS value, model_printed || ', ' || split_part(conditions, ';', 1) AS baseline,
    printf('%.2f × %.5f / 1000 = %.4f', throughput, latency_ms, throughput * latency_ms / 1000) AS arithmetic,
    ['results:' || result_id] AS inputs
FROM results
WHERE document_id = 'graphcore-poprt-1.5' AND contains(conditions, 'over its samples') AND abs(value - 1) > 0.01
ORDER BY value DESC, result_id
