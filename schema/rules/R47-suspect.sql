-- scope: document
-- Flag a point that its sweep calls suspect, such as for a machine that was disturbed while it ran.
SELECT result_id, 'throughput' AS column_name, 'warn' AS severity, raw_text AS message
FROM cells
WHERE column_name = 'suspect' AND raw_text <> ''
