-- A row of the configuration of an earlier one, in another spelling: its figures are those of that
-- row again, or contradict them.
WITH numbered AS (
    SELECT run, first_value(run) OVER (
        PARTITION BY
            model, variant, dataset, task, platform, chip, chip_count, framework, sdk_version,
            precision, batch_size, micro_batch_size, list_sort(string_split(conditions, '; '))
        ORDER BY run
    ) AS first_run
    FROM mine
)
SELECT
    if(bool_or(m.value <> f.value), 'contradiction', 'duplicate') AS reason,
    locate_row(m.row_number) AS place,
    if(reason = 'duplicate', format('is row {} again', f.row_number), format(
        'and row {} are of one configuration: {}', f.row_number, string_agg(
            format('{} {:.12g} and {:.12g}', m.name, f.value, m.value), '; ' ORDER BY m.position
        ) FILTER (m.value <> f.value)
    )) AS message
FROM numbered n
JOIN stated m USING (run)
JOIN stated f ON (f.run, f.position) = (n.first_run, m.position)
WHERE n.run <> n.first_run
GROUP BY m.row_number, f.row_number
