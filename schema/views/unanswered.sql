WITH tests AS (  -- what the makers of IPUs print a throughput of
    SELECT
        r.task, r.network, r.platform, p.family, count(*) AS rows,
        count(DISTINCT r.sdk_version) AS releases, count(*) FILTER (r.sdk_version IS NULL) AS without_release,
        count(*) FILTER (r.efficiency IS NOT NULL OR r.energy_per_item_j IS NOT NULL OR r.power_w IS NOT NULL) AS with_power
    FROM measurements r
    JOIN platforms p USING (platform)
    WHERE
        r.origin = 'published' AND r.benchmark IS NULL AND r.throughput IS NOT NULL AND r.relationship = 'vendor'
        AND p.family IN ({ipu_families})
    GROUP BY ALL
),
generation_pairs AS (
    SELECT
        task, model AS network, bool_or(near_sdk) AS near_sdk,
        bool_or(same_test AND same_framework AND same_precision AND same_batch AND same_item) AS same_work
    FROM (
        SELECT n.* REPLACE (r.network AS model) FROM detail.generations_naive n JOIN detail.record r ON r.result_id = n.bow_result_id
    )
    GROUP BY ALL
),
questions AS (
    SELECT
        'sdk_effect' AS view_name, task, network, platform, rows,
        CASE
            WHEN releases = 0 THEN 'no row states its SDK'
            WHEN releases = 1 THEN 'one SDK only'
            ELSE 'no two rows differ in the SDK alone'
        END AS reason
    FROM tests t
    WHERE NOT EXISTS (FROM detail.sdk_effect s WHERE s.task = t.task AND s.network = t.network AND s.platform = t.platform)
    UNION ALL
    SELECT
        'generations', t.task, t.network, NULL, sum(t.rows)::BIGINT,
        CASE
            WHEN count(*) FILTER (t.family = 'Bow') = 0 THEN 'no Bow row'
            WHEN count(*) FILTER (t.family = 'Classic') = 0 THEN 'no Classic row'
            WHEN any_value(g.network) IS NULL THEN 'Bow and Classic share no number of chips'
            WHEN NOT any_value(g.near_sdk) THEN 'Bow and Classic share no SDK, not even nearly'
            WHEN NOT any_value(g.same_work) THEN 'no two rows agree in test, framework, precision, batch and items'
            ELSE 'the rows that agree in the work differ in the SDK, or have an error flag'
        END
    FROM tests t
    LEFT JOIN generation_pairs g ON g.task = t.task AND g.network = t.network
    WHERE t.family IN ('Bow', 'Classic') AND NOT EXISTS (
        FROM generations x JOIN detail.record r ON r.result_id = x.bow_result_id
        WHERE x.task = t.task AND r.network = t.network
    )
    GROUP BY t.task, t.network
    UNION ALL
    SELECT
        'energy_per_item', task, network, platform, rows,
        CASE WHEN with_power = 0 THEN 'no power, energy or efficiency is printed' ELSE 'the power is not that of the machine' END
    FROM tests t
    WHERE NOT EXISTS (
        FROM energy_per_item e
        WHERE e.task = t.task AND e.network = t.network AND e.platform = t.platform AND e.power_scope = 'machine'
    )
)
FROM questions
