-- Four bytes for each parameter in decimal MB: of the paper's rounded millions and of the count in models.
SELECT value, baseline, arithmetic, inputs
FROM (
    SELECT
        1 AS place, p.value * 4 AS value, 'the paper''s own ' || p.figure AS baseline,
        printf('%g × 4 = %g', p.value, p.value * 4) AS arithmetic, ['claims:' || p.claim_id] AS inputs
    FROM printed AS p
    WHERE p.claim_id = 'qwant2020-parameters'
    UNION ALL
    SELECT
        2, m.parameters * 4 / 1e6, m.model, printf('%d × 4 / 1e6 = %.2f', m.parameters, m.parameters * 4 / 1e6),
        ['models:' || m.model]
    FROM claim AS c
    JOIN models AS m ON m.model = c.model_printed
) AS told
ORDER BY place
