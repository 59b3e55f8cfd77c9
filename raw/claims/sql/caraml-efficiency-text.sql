-- Highest label of tokens per Wh of the H100 PCIe over that of each other device in figure 2 of CARAML.
WITH best AS (
    SELECT platform, max(efficiency) AS efficiency, arg_max(result_id, efficiency) AS result_id
    FROM results
    WHERE document_id = 'independent-caraml-2024' AND model_printed = 'GPT-800M'
    GROUP BY platform
)
SELECT
    h.efficiency / o.efficiency AS value, o.platform AS baseline,
    printf('%.1f / %.1f = %.2f tokens/J', h.efficiency, o.efficiency, h.efficiency / o.efficiency) AS arithmetic,
    ['results:' || h.result_id, 'results:' || o.result_id] AS inputs
FROM best AS h
JOIN best AS o ON o.platform <> h.platform
WHERE h.platform LIKE '%H100-PCIe%'
ORDER BY value, o.platform
