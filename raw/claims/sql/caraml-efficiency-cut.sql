-- Thousands of tokens per Wh that throughput and energy of an hour give, less the label of figure 2 of CARAML: 0 to 1 where digits
-- are cut off, -0.5 to 0.5 where they are rounded.
SELECT
    median(given - label) AS value, platform || ', ' || count(*) || ' labels' AS baseline,
    printf('from %.2f to %.2f, median %.2f', min(given - label), max(given - label), median(given - label)) AS arithmetic,
    list('results:' || result_id ORDER BY result_id) AS inputs
FROM (
    SELECT platform, result_id, 3.6 * throughput / (e.value / 3600) AS given, 3.6 * efficiency AS label
    FROM results
    JOIN figures AS e USING (result_id)
    WHERE e.metric = 'run_energy_j' AND document_id = 'independent-caraml-2024' AND model_printed = 'GPT-800M'
)
GROUP BY platform
ORDER BY platform
