-- The official entries with what their runs and other documents say of them: all of `mlperf_entries` but
-- the intervals of the scores.
--
-- A run is matched by round and path, an id by round and the system's folder, a reference by round and
-- benchmark. Without a match the columns are null.
-- Entries of one benchmark whose counted runs take the same minutes, to the millisecond, are one
-- measurement: some submitters hand in the same logs again, in the same or a later round and with other
-- bytes. The first by round and path is the one that others repeat; no other one is usable.
-- From v2.1 on the closed division multiplies the minutes of an entry that converges faster than the
-- reference.
-- Minutes that several documents print for an entry are those of the last document by its id.
WITH entered AS (
    SELECT
        e.*,
        s.result_id,
        p.unit,
        order_round(e.round) >= [2, 1] AND coalesce(e.division = 'closed', FALSE) AS normalised,
        find_reference(p.points, e.global_batch_size) AS reference
    FROM read.mlperf_entries e
    JOIN source_rows s USING (document_id, table_name, row_number)
    LEFT JOIN reference_points p USING (round, benchmark)
),
runs AS (
    SELECT
        m.*,
        if(m.is_used, m.minutes_per_sample, NULL) AS speed,
        CASE e.unit  -- the checker rounds epochs
            WHEN 'steps' THEN m.samples / e.global_batch_size
            WHEN 'epochs' THEN format('{:.3f}', m.epochs)::DOUBLE
            WHEN 'tokens' THEN m.tokens
            WHEN 'samples' THEN m.samples
        END AS needed
    FROM entered e
    JOIN logs m USING (round, path)
),
summaries AS (
    SELECT
        e.round,
        e.path,
        count(DISTINCT coalesce(r.sha256, r.file)) AS distinct_logs,
        count(r.sha256) FILTER (is_shared) AS shared_logs,
        coalesce(list(r.minutes ORDER BY r.minutes) FILTER (counted), []) AS run_minutes,
        count(DISTINCT r.seed) AS distinct_seeds,
        count(speed) AS speed_runs,
        describe_mean(list(speed) FILTER (speed IS NOT NULL)) AS speed,
        favg(startup_minutes) FILTER (speed IS NOT NULL) AS startup_minutes,
        favg(wait_minutes) FILTER (is_used) AS wait_minutes,
        CASE
            WHEN count(*) FILTER (is_used) = 0 THEN 'it has no counted run'
            WHEN count(speed) = 0 THEN mode(no_speed_reason ORDER BY file) FILTER (is_used)
        END AS no_speed_reason,
        if(
            bool_and(needed IS NOT NULL) FILTER (counted),
            e.reference.mean / nullif(olympic_mean(
                list(needed) FILTER (counted),
                count(*) FILTER (NOT counted),
                find_drop(e.benchmark)
            ), 0),
            NULL
        ) AS ratio,
        CASE WHEN e.normalised THEN if(ratio < 1, 1, ratio) END AS expected_scaling_factor,
        summarise_findings(
            e.scaling_factor,
            if(any_value(e.minutes) IS NULL, NULL, expected_scaling_factor),
            list(r.findings ORDER BY file) FILTER (r.findings IS NOT NULL),
            list(r.seed) FILTER (r.file IS NOT NULL),
            coalesce(list(r.minutes) FILTER (is_used), [])
        ) AS findings
    FROM entered e
    LEFT JOIN runs r USING (round, path)
    GROUP BY e.round, e.path, e.scaling_factor, e.benchmark, e.normalised, e.reference
),
measurements AS (
    SELECT
        round,
        path,
        first_value(result_id) OVER same AS original
    FROM entered
    JOIN summaries USING (round, path)
    WHERE result_id IS NOT NULL
    WINDOW same AS (PARTITION BY benchmark, run_minutes ORDER BY order_round(round), path)
),
published AS (
    FROM read.mlperf_published
    QUALIFY row_number() OVER (PARTITION BY round, path ORDER BY document_id DESC) = 1
)
SELECT
    e.* EXCLUDE (table_name, row_number, locator, unit, reference),
    e.reference.mean AS reference_to_converge,
    e.reference.method AS reference_method,
    s.* EXCLUDE (round, path, run_minutes, speed, ratio),
    s.speed.mean AS minutes_per_sample,
    s.speed.low AS minutes_per_sample_low,
    s.speed.high AS minutes_per_sample_high,
    coalesce(c.company, e.submitter) AS company,
    name_platform(e.platform_printed) AS platform,
    refine_chip(e.chip_printed, e.chip_memory, e.path) AS chip,
    nullif(m.original, e.result_id) AS same_as,
    coalesce(m.original = e.result_id, FALSE) AS usable,
    i.mlperf_id,
    i.confidence AS mlperf_id_confidence,
    CASE
        WHEN b.first_round <> b.last_round THEN b.first_round || '-' || b.last_round
        ELSE e.round
    END AS comparable_rounds,
    b.model,
    format_attribution(
        {
            'round': e.round, 'division': e.division, 'benchmark': e.benchmark,
            'submitter': e.submitter, 'path': e.path
        },
        format('{} ({})', i.mlperf_id, i.confidence),
        d.retrieved_on
    ) AS attribution,
    if(e.minutes IS NULL, p.minutes_published, NULL) AS minutes_published,
    if(e.minutes IS NULL, p.document_id, NULL) AS published_in,
    rcp.rcp_mean,
    rcp.rcp_unit
FROM entered e
LEFT JOIN summaries s USING (round, path)
JOIN documents d USING (document_id)
LEFT JOIN measurements m USING (round, path)
LEFT JOIN published p USING (round, path)
LEFT JOIN read.mlperf_rcp rcp USING (round, benchmark, global_batch_size)
LEFT JOIN (VALUES {mlperf.companies: name, value}) AS c (company, submitter) USING (submitter)
LEFT JOIN read.mlperf_ids i
    ON i.round = e.round
    AND i.system_path = parent_folder(e.path)
LEFT JOIN detail.mlperf_comparability b
    ON b.benchmark = e.benchmark
    AND order_round(e.round) BETWEEN order_round(b.first_round) AND order_round(b.last_round)
