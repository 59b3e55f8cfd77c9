-- Millions of parameters of the claim's model, counted from the architecture.
SELECT
    m.parameters / 1e6 AS value,
    m.model AS baseline,
    printf('%d parameters / 1e6 = %.2f', m.parameters, m.parameters / 1e6) AS arithmetic,
    ['models:' || m.model] AS inputs
FROM claim AS c
JOIN models AS m ON m.model = c.model_printed
ORDER BY m.model
