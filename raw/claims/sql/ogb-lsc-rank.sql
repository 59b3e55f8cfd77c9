-- Rank of the team whose code the contest links to in a repository of the claim's publisher, in the claim's part.
SELECT
    r.value AS value,
    r.subject AS baseline,
    printf('rank %g, code %s', r.value, f.text_value) AS arithmetic,
    ['facts:' || r.fact_id, 'facts:' || f.fact_id] AS inputs
FROM claim AS c
JOIN detail.facts AS r ON split_part(r.subject, ', ', 2) = c.dataset_printed AND r.property = 'rank'
JOIN detail.facts AS f ON f.subject = r.subject AND f.property = 'code'
WHERE r.document_id = 'ogb-lsc-2022-results' AND starts_with(f.text_value, 'https://github.com/graphcore/')
ORDER BY r.fact_id
