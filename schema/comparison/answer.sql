-- Everything that is said of each run: one row a run, in their order.
WITH unusable AS (  -- rows of the model and task, by what keeps a verdict from resting on them
    SELECT m.run, c.unusable, count(*) AS rows
    FROM mine m
    JOIN candidates c USING (model, task)
    GROUP BY ALL
),
counts AS (
    SELECT
        run, format(
            '{:,} of {} are not usable: {}', (sum(rows) FILTER (words <> ''))::BIGINT,
            format_count(sum(rows), 'row'),
            string_agg(format('{} {}', rows, words), ', ' ORDER BY position)
        ) AS unusable
    FROM unusable
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
    v.status, v.verdict,
    ARRAY(SELECT x FROM matches x WHERE x.run = m.run ORDER BY x.position) AS matches,
    ARRAY(SELECT x FROM refusals x WHERE x.run = m.run ORDER BY x.position) AS refusals,
    ARRAY(SELECT x FROM checks x WHERE x.run = m.run ORDER BY x.position) AS checks,
    p.peers, coalesce(u.unusable, '') AS unusable
FROM mine m
JOIN verdicts v USING (run)
JOIN peers p USING (run)
LEFT JOIN counts u USING (run)
ORDER BY m.run
