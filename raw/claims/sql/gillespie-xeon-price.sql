-- Price of four Xeon for an hour by the footnote, and what 42.5455 s of each printed price cost, in EUR.
SELECT
    4 * one.value AS value,
    'four times the footnote' AS baseline,
    printf(
        '4 x %g = %.4f EUR/h, printed %g; %g s cost %.4f or %.4f EUR, printed %g',
        one.value, 4 * one.value, four.value, m.value, 4 * one.value * m.value / 3600, four.value * m.value / 3600, cost.value
    ) AS arithmetic,
    ['facts:' || one.fact_id, 'facts:' || four.fact_id, 'facts:' || cost.fact_id] AS inputs,
    NULL::VARCHAR AS relation
FROM detail.facts AS one
JOIN detail.facts AS four ON four.fact_id = 'gcore-xeon-price-2023-table'
JOIN detail.facts AS cost ON cost.fact_id = 'gcore-xeon-batch-cost-2023'
JOIN microbenchmarks AS m ON m.document_id = 'independent-childs-gillespie' AND m.value = 42.5455
WHERE one.fact_id = 'gcore-xeon-price-2023-note'
