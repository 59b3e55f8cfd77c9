-- CARAML's two series of MI250 in figure 2: throughput and energy of the one over the other at each batch.
SELECT
    pair_energy.value / die_energy.value AS value,
    regexp_extract(die.conditions, 'global batch \d+') AS baseline,
    printf('throughput %g / %g = %.2f, energy %g / %g Wh = %.2f', pair.throughput, die.throughput,
        pair.throughput / die.throughput, pair_energy.value / 3600, die_energy.value / 3600, pair_energy.value / die_energy.value) AS arithmetic,
    ['results:' || pair.result_id, 'results:' || die.result_id] AS inputs,
    NULL::VARCHAR AS relation
FROM results AS die
JOIN results AS pair ON regexp_extract(pair.conditions, 'global batch \d+') = regexp_extract(die.conditions, 'global batch \d+')
JOIN figures AS die_energy ON die_energy.result_id = die.result_id AND die_energy.metric = 'run_energy_j'
JOIN figures AS pair_energy ON pair_energy.result_id = pair.result_id AND pair_energy.metric = 'run_energy_j'
WHERE die.document_id = 'independent-caraml-2024' AND pair.document_id = die.document_id
    AND die.model_printed = 'GPT-800M' AND pair.model_printed = 'GPT-800M' AND die.chip = 'MI250 GCD' AND pair.chip = 'MI250'
ORDER BY regexp_extract(die.conditions, '\d+')::INTEGER, die.result_id
