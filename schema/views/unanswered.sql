WITH tests AS (  -- what the makers of IPUs print a throughput of
    SELECT
        r.task, r.model, r.platform, p.family, count(*) AS rows,
        count(DISTINCT r.sdk_version) AS releases, count(*) FILTER (r.sdk_version IS NULL) AS without_release,
        count(*) FILTER (
            r.efficiency IS NOT NULL
            OR r.result_id IN (SELECT result_id FROM figures WHERE metric IN ('energy_per_item_j', 'power_w'))
        ) AS with_power
    FROM measurements r
    JOIN platforms p USING (platform)
    WHERE
        r.origin = 'published' AND r.benchmark IS NULL AND r.throughput IS NOT NULL AND r.relationship = 'vendor'
        AND p.family IN ({ipu_families})
    GROUP BY ALL
),
machines AS (
    SELECT
        r.*, p.family,
        TRY_CAST(string_split(replace(r.sdk_version, 'Pre-SDK2.5', '2.4'), '.') AS INTEGER[]) AS sdk
    FROM results r
    JOIN platforms p USING (platform)
    WHERE
        r.origin = 'published' AND r.relationship = 'vendor' AND r.benchmark IS NULL AND r.throughput IS NOT NULL
        AND p.family IN ('Bow', 'Classic')
),
generation_pairs AS (  -- Bow rows next to Classic rows, whatever else differs
    SELECT
        b.task, b.model, bool_or(c.sdk[1] = b.sdk[1] AND abs(c.sdk[2] - b.sdk[2]) <= 1) AS near_sdk,
        bool_or(
            c.model = b.model AND c.variant IS NOT DISTINCT FROM b.variant
            AND c.dataset_printed IS NOT DISTINCT FROM b.dataset_printed AND c.framework = b.framework
            AND c.precision_printed = b.precision_printed AND c.batch_size = b.batch_size AND c.item = b.item
        ) AS same_work
    FROM machines b
    JOIN machines c ON c.task = b.task AND c.model_printed = b.model_printed AND c.chip_count = b.chip_count
    WHERE b.family = 'Bow' AND c.family = 'Classic'
    GROUP BY ALL
),
energies AS (  -- also rows with an error flag, which `energy_per_item` leaves out
    SELECT
        r.*, k.family IN ({ipu_families}) AS is_ipu, k.family LIKE 'NVIDIA %' OR k.family LIKE 'AMD CDNA%' AS is_gpu
    FROM measurements r
    JOIN (SELECT chip, max(family) AS family FROM platforms GROUP BY chip) k USING (chip)
    WHERE r.efficiency IS NOT NULL OR r.result_id IN (SELECT result_id FROM figures WHERE metric = 'energy_per_item_j')
),
energy_pairs AS (
    SELECT i.task, i.model, i.result_id AS ipu_result_id, g.result_id AS gpu_result_id
    FROM energies i
    JOIN energies g
        ON g.document_id = i.document_id AND g.task = i.task AND g.item = i.item
        AND regexp_replace(g.model, ' v[\d.]+$', '') = regexp_replace(i.model, ' v[\d.]+$', '')
        AND g.variant IS NOT DISTINCT FROM i.variant AND g.batch_size = i.batch_size AND g.chip_count = i.chip_count
    WHERE i.is_ipu AND g.is_gpu
),
questions AS (
    SELECT
        'sdk_effect' AS view_name, task, model, platform, rows,
        CASE
            WHEN releases = 0 THEN 'no row states its SDK'
            WHEN releases = 1 THEN 'one SDK only'
            ELSE 'no two rows differ in the SDK alone'
        END AS reason
    FROM tests t
    WHERE NOT EXISTS (FROM detail.sdk_effect s WHERE s.task = t.task AND s.model = t.model AND s.platform = t.platform)
    UNION ALL
    SELECT
        'generations', t.task, t.model, NULL, sum(t.rows)::BIGINT,
        CASE
            WHEN count(*) FILTER (t.family = 'Bow') = 0 THEN 'no Bow row'
            WHEN count(*) FILTER (t.family = 'Classic') = 0 THEN 'no Classic row'
            WHEN any_value(g.model) IS NULL THEN 'Bow and Classic share no number of chips'
            WHEN any_value(g.near_sdk) IS NOT TRUE THEN 'Bow and Classic share no SDK, not even nearly'
            WHEN any_value(g.same_work) IS NOT TRUE
                THEN 'no two rows agree in test, framework, precision, batch and items'
            ELSE 'the rows that agree in the work differ in the SDK, or have an error flag'
        END
    FROM tests t
    LEFT JOIN generation_pairs g ON g.task = t.task AND g.model = t.model
    WHERE t.family IN ('Bow', 'Classic')
        AND NOT EXISTS (FROM generations x WHERE x.task = t.task AND x.model = t.model)
    GROUP BY t.task, t.model
    UNION ALL
    SELECT
        'energy_per_item', task, model, platform, rows,
        CASE WHEN with_power = 0 THEN 'no power, energy or efficiency is printed' ELSE 'the power is not that of the machine' END
    FROM tests t
    WHERE NOT EXISTS (
        FROM energy_per_item e
        WHERE e.task = t.task AND e.model = t.model AND e.platform = t.platform AND e.power_scope = 'machine'
    )
    UNION ALL
    SELECT
        'energy_ipu_gpu', task, model, NULL, count(DISTINCT (ipu_result_id, gpu_result_id)),
        concat('each pair has a row that is not usable, by ', string_agg(DISTINCT f.rule, ', ' ORDER BY f.rule))
    FROM energy_pairs p
    LEFT JOIN flags f
        ON f.result_id IN (p.ipu_result_id, p.gpu_result_id) AND (f.severity = 'error' OR f.rule = 'R47')
    WHERE NOT EXISTS (FROM detail.energy_ipu_gpu e WHERE e.task = p.task AND e.model = p.model)
    GROUP BY task, model
)
FROM questions
