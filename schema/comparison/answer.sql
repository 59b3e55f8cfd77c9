-- Everything that is said of each run: one row a run, in their order.
WITH all_ratios AS (
    SELECT
        run, match, any_value(per_chip) FILTER (is_first) AS ratio_per_chip,
        arg_min(sentence, position) AS description,
        list({
            'figure': figure, 'ours': ours, 'theirs': theirs, 'ratio': ratio, 'low': low,
            'high': high, 'unit': unit
        } ORDER BY position) AS ratios
    FROM ratios
    GROUP BY run, match
),
not_compared AS (
    SELECT run, result_id, list(
        {'figure': figure, 'reason': obstacle.reason} ORDER BY position
    ) AS figures
    FROM shared_figures
    WHERE obstacle IS NOT NULL
    GROUP BY run, result_id
),
all_matches AS (
    SELECT
        n.run, list({
            'group': n.party, 'group_name': n.title, 'description': a.description,
            'distance': n.distance, 'row': c, 'ratios': a.ratios,
            'not_compared': coalesce(x.figures, []), 'differences': coalesce(d.differences, []),
            'ratio_per_chip': a.ratio_per_chip
        } ORDER BY n.position) AS matches
    FROM nearest n
    JOIN all_ratios a ON a.run = n.run AND a.match = n.position
    JOIN candidates c USING (result_id)
    LEFT JOIN not_compared x ON x.run = n.run AND x.result_id = n.result_id
    LEFT JOIN differences d ON d.run = n.run AND d.match = n.position
    GROUP BY n.run
),
all_refusals AS (
    SELECT run, list({
        'reason': reason, 'code': code, 'rows': rows, 'examples': examples
    } ORDER BY position) AS refusals
    FROM refusals
    GROUP BY run
),
all_checks AS (
    SELECT run, list({
        'name': name, 'outcome': outcome, 'message': message, 'value': value, 'limit': "limit"
    } ORDER BY position) AS checks
    FROM checks
    GROUP BY run
),
counts AS (  -- rows of the model and task, by what keeps a verdict from resting on them
    SELECT m.run, c.unusable, count(*) AS rows
    FROM mine m
    JOIN candidates c USING (model, task)
    GROUP BY ALL
),
all_unusable AS (
    SELECT
        run, (sum(rows) FILTER (unusable IS NOT NULL))::BIGINT AS unusable,
        sum(rows)::BIGINT AS all_rows,
        string_agg(format('{} {}', rows, words), ', ' ORDER BY position) AS why
    FROM counts
    LEFT JOIN reasons USING (unusable)
    GROUP BY run
)
SELECT
    m.run,
    format(
        '{} {}{}{}{}: {}', m.model, m.task, coalesce(' on ' || m.platform, ', machine not stated'),
        coalesce(', batch ' || m.batch_size, ''),
        if(m.origin = 'emulated', ' (emulated, not measured)', ''), concat_ws(
            ', ', write_figure('throughput', m.throughput, m.item),
            write_figure('latency_ms', m.latency_ms, m.item),
            write_figure('minutes', m.minutes, m.item),
            write_figure('efficiency', m.efficiency, m.item),
            write_figure('power_w', m.power_w, m.item)
        )
    ) AS description,
    v.status, v.verdict, coalesce(a.matches, []) AS matches,
    coalesce(f.refusals, []) AS refusals, c.checks,
    struct_pack(rows := p.rows, throughput_low := p.throughput_low,
        throughput_high := p.throughput_high, latency_ms := p.latency_ms) AS peers,
    coalesce(format(
        '{:,} of {:,} row{} are not usable: {}', u.unusable, u.all_rows,
        if(u.all_rows = 1, '', 's'), u.why
    ), '') AS unusable
FROM mine m
JOIN verdicts v USING (run)
JOIN peers p USING (run)
JOIN all_checks c USING (run)
LEFT JOIN all_matches a USING (run)
LEFT JOIN all_refusals f USING (run)
LEFT JOIN all_unusable u USING (run)
ORDER BY m.run
