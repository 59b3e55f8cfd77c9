-- A model whose name the record prints for several networks, where nothing else of the row tells
-- which one it is.
SELECT
    'unknown-word' AS reason, 'results.csv' AS place,
    format('model ''{}'' names several models: {}; write which', own.model,
        string_agg(named.model, ', ' ORDER BY named.model)) AS message
FROM (SELECT DISTINCT model FROM mine) own
JOIN (SELECT DISTINCT model_printed, model FROM results) named ON named.model_printed = own.model
GROUP BY own.model
HAVING count(*) > 1 AND NOT bool_or(named.model = own.model)
