-- What refuses nothing, but a maintainer should look at.
SELECT format('{} {}: {}', severity, rule, message) AS text
FROM raised
WHERE severity <> 'error'
UNION ALL
SELECT format(
    'how says ''{}'': read whether the figures are measured', find_emulator(how)
)
FROM description
WHERE find_emulator(how) <> ''
UNION ALL
SELECT DISTINCT format(
    'the tool marked a row as {}: measure it again on a quiet machine, or say why it counts',
    'suspect, ' || get_condition(conditions, 'suspect')
)
FROM lines
WHERE get_condition(conditions, 'suspect') <> ''
UNION ALL
SELECT DISTINCT format(
    'sdk_version {}: the newest on {} that the record knows is {}', sdk_version, chip, known
)
FROM mine
JOIN (
    SELECT chip, arg_max(sdk_version, split_version(sdk_version)) AS known
    FROM candidates
    WHERE split_version(sdk_version)[1] IS NOT NULL
    GROUP BY chip
) USING (chip)
WHERE split_version(sdk_version) > split_version(known)
UNION ALL
SELECT format('{}: {}', locate_row(m.row_number), a.verdict)
FROM answer a
JOIN mine m USING (run)
WHERE a.status = 'doubtful'
UNION ALL
SELECT format(
    '{}: nothing shows whether the unit of the energy is right; state the throughput of the same'
    ' run, or the time of the whole run', locate_row(row_number)
)
FROM mine
LEFT JOIN (FROM powers WHERE place = 4) p USING (run)
WHERE coalesce(energy_per_item_j, efficiency) IS NOT NULL AND throughput IS NULL
    OR run_energy_j IS NOT NULL AND p.run IS NULL
UNION ALL
SELECT format(
    'variant ''{}'': no row of {} has it; the nearest: {}', m.variant, m.model,
    arg_max(c.variant, jaro_winkler_similarity(c.variant, m.variant))
)
FROM mine m
JOIN candidates c USING (model)
WHERE m.variant <> '' AND c.variant <> ''
GROUP BY m.variant, m.model
HAVING NOT bool_or(normalise_name(c.variant) = normalise_name(m.variant))
