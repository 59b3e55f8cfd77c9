-- The power in W that a row of the hand-in states, and those that its energy and efficiency imply.
WITH timed AS (  -- in s: how long the energy of a run was drawn
    SELECT *, coalesce(
        time_to_train_s, time_to_result_s,
        if(get_condition(conditions, 'energy of') IN ('one hour', '1 hour', '1 h'), 3600, NULL)
    ) AS time_s
    FROM mine
),
listed AS (
    SELECT run, unnest([
        {'place': 1, 'what': 'power', 'watts': power_w, 'names': ['power_w']},
        {'place': 2, 'what': 'throughput × energy per item',
            'watts': throughput * energy_per_item_j, 'names': ['throughput', 'energy_per_item_j']},
        {'place': 3, 'what': 'throughput / efficiency', 'watts': throughput / efficiency,
            'names': ['throughput', 'efficiency']},
        {'place': 4, 'what': format('energy / {:.12g} s', time_s),
            'watts': run_energy_j / time_s, 'names': ['run_energy_j']}
    ], max_depth := 2)
    FROM timed
)
SELECT
    run, place, watts, min(digits) AS digits,
    format('{:.4g} W ({}: {})', watts, what, string_agg(
        format('{} {:.12g}', name, value), ', ' ORDER BY position
    )) AS text
FROM listed
JOIN stated USING (run)
WHERE watts > 0 AND list_contains(names, name)
GROUP BY run, place, watts, what
