-- The table `platforms`: the machines of the vocabulary, and the others that results name.
--
-- A machine of the vocabulary has nodes and host processors from the official descriptions, of its own or
-- of the machine that it is a part of. One that the vocabulary does not have is as its descriptions say,
-- else the virtual machine that a local run describes, else a name alone. A fact on which descriptions
-- differ, or that one leaves out, is null, and `source` has what they say.
-- A vendor is known by how the names of its chips begin. Of chips of several generations, of which the
-- vocabulary may not know all, they share the vendor. A system without accelerators has no chip.
WITH families AS (
    SELECT chip, last(family ORDER BY platform) AS family
    FROM known_platform
    GROUP BY chip
),
completed AS (
    SELECT
        d.platform,
        CASE WHEN d.chip_count IS DISTINCT FROM 0 THEN d.chip END AS chip,
        count(DISTINCT coalesce(d.chip, '')) OVER (PARTITION BY d.platform) = 1 AS is_one_chip,
        coalesce(if(is_one_chip, f.family, NULL), v.vendor) AS family,
        nullif(d.chip_count, 0) AS chip_count,
        CASE
            WHEN d.nodes > 1 THEN if(d.availability = 'cloud', 'cloud cluster', 'cluster')
            WHEN d.nodes <= 1 THEN if(d.availability = 'cloud', 'cloud instance', 'server')
        END AS form,
        d.nodes,
        d.host_processor,
        d.host_processors_per_node
    FROM descriptions d
    LEFT JOIN families f ON f.chip = d.chip AND d.chip_count IS DISTINCT FROM 0
    LEFT JOIN (VALUES {platforms.vendors: name, value}) AS v (vendor, start)
        ON starts_with(lower(d.chip_printed), lower(v.start))
),
facts AS (  -- numbers come in their order, before texts in theirs
    SELECT
        platform,
        fact,
        list_position(
            ['family', 'chip', 'chip_count', 'form', 'nodes', 'host_processor', 'host_processors_per_node'],
            fact
        ) AS position,
        list(value ORDER BY try_cast(value AS BIGINT), value) FILTER (value IS NOT NULL) AS stated,
        if(bool_or(value IS NULL), ['not said'], []) AS unsaid,
        coalesce(len(stated), 0) AS n
    FROM (
        SELECT DISTINCT *
        FROM (SELECT platform, COLUMNS(* EXCLUDE (platform, is_one_chip))::VARCHAR FROM completed)
        UNPIVOT INCLUDE NULLS (value FOR fact IN (COLUMNS(* EXCLUDE (platform))))
    )
    GROUP BY platform, fact
),
differences AS (
    SELECT
        platform,
        string_agg(text, '; ' ORDER BY position) AS all_differences,
        string_agg(text, '; ' ORDER BY position) FILTER (position >= 5) AS host_differences
    FROM (
        SELECT
            platform,
            position,
            CASE fact
                WHEN 'family' THEN 'vendor'
                WHEN 'nodes' THEN 'number of nodes'
                ELSE replace(fact, '_', ' ')
            END
            || ' differs: '
            || array_to_string(stated[:3] || unsaid, ', ')
            || if(n > 3, format(' and {} more', n - 3), '') AS text
        FROM facts
        WHERE n + len(unsaid) > 1
    )
    GROUP BY platform
),
agreed AS (
    PIVOT (SELECT platform, fact, stated[1] AS value FROM facts WHERE n = 1 AND unsaid = [])
    ON fact IN (
        'family', 'chip', 'chip_count', 'form', 'nodes', 'host_processor', 'host_processors_per_node'
    )
    USING any_value(value)
    GROUP BY platform
),
summaries AS (
    SELECT
        platform,
        string_agg(format('v{} {}', round, system_path), ', ' ORDER BY number) FILTER (number <= 3)
            || if(count(*) > 3, format(' and {} more', count(*) - 3), '') AS names,
        if(
            bool_and(coalesce(chip_count = 0, FALSE)),
            'no accelerator: the host processors compute',
            NULL
        ) AS no_chip
    FROM descriptions
    GROUP BY platform
),
described AS (
    FROM summaries
    LEFT JOIN agreed USING (platform)
    LEFT JOIN differences USING (platform)
),
candidates AS (
    SELECT
        1 AS priority,
        k.* EXCLUDE (part_of, described_as) REPLACE (
            if(d.platform IS NULL, k.nodes, d.nodes::BIGINT) AS nodes,
            if(d.platform IS NULL, k.host_processor, d.host_processor) AS host_processor,
            if(
                d.platform IS NULL, k.host_processors_per_node, d.host_processors_per_node::BIGINT
            ) AS host_processors_per_node,
            nullif(concat_ws(
                '; ', k.source, 'nodes and host processors: ' || d.names, d.host_differences
            ), '') AS source
        )
    FROM known_platform k
    LEFT JOIN described d ON d.platform = coalesce(k.part_of, k.platform)
    UNION ALL BY NAME
    SELECT
        2 AS priority,
        * EXCLUDE (names, no_chip, all_differences, host_differences) REPLACE (
            chip_count::BIGINT AS chip_count,
            nodes::BIGINT AS nodes,
            host_processors_per_node::BIGINT AS host_processors_per_node
        ),
        concat_ws('; ', 'MLPerf system descriptions: ' || names, no_chip, all_differences) AS source
    FROM described
    UNION ALL BY NAME
    SELECT
        3 AS priority,
        platform,
        'virtual machine' AS form,
        1 AS nodes,
        processor AS host_processor,
        virtual_cpus,
        format('environment of the run {}: {}', run_id, evidence) AS source
    FROM machines
    UNION ALL BY NAME
    SELECT DISTINCT 4 AS priority, platform, 'printed name, not in the vocabulary' AS source
    FROM results
)
SELECT * EXCLUDE (priority)
FROM candidates
WHERE priority = 1 OR platform IN (SELECT platform FROM results)
QUALIFY row_number() OVER (PARTITION BY platform ORDER BY priority, source) = 1
