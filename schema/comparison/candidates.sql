-- The rows of the record that a run may be compared with: results, with what a comparison needs of
-- their figures, flags and official entry. `mine` has the same columns for the runs of a user.
WITH few_figures AS (  -- that few results have
    PIVOT figures ON metric IN ({few_figures}) USING any_value(value) GROUP BY result_id
),
doubts AS (  -- R47 flags a row that its own source calls suspect
    SELECT
        result_id,
        any_value(message) FILTER (rule = 'R47') AS suspect,
        string_agg(
            format('{}, {}: {}', rule, if(severity = 'error', 'error', 'suspect'), message),
            '; ' ORDER BY rule, message
        ) AS doubt
    FROM flags
    WHERE severity = 'error' OR rule = 'R47'
    GROUP BY result_id
),
setups AS (
    -- What the rows of a table share and their columns do not hold. arXiv:2002.11670 timed the
    -- program that the vendor then published as `resnext_inference` (PopART). Neither says which
    -- weights it read.
    SELECT
        'qwant_c2' AS table_name, '2' AS sessions, NULL::VARCHAR AS weights,
        'centre crop 224 × 224 without resize, ImageNet normalisation' AS preprocessing,
        'fp16' AS model_precision, 'overlap' AS pipeline, 'amortised' AS latency, 'board' AS power
)
SELECT
    r.*, few_figures.* EXCLUDE (result_id), doubts.suspect, doubts.doubt,
    setups.sessions, setups.weights, setups.preprocessing, setups.model_precision, setups.pipeline,
    r.time_to_train_s / 60 AS minutes,
    CASE WHEN r.run_id IS NOT NULL THEN 'amortised' END AS latency_kind,
    -- what the latency times and the power is of, in a report: no rule reads what a setup says
    coalesce(latency_kind, r.latency_basis, setups.latency) AS reported_latency,
    coalesce(r.power_scope, setups.power) AS reported_power,
    nullif(regexp_extract(r.variant, '{input_size}'), '') AS input_size,
    e.comparable_rounds, if(e.convergence_unit = 'epochs', e.epochs_to_converge, NULL) AS epochs,
    e.minutes_low, e.minutes_high, e.attribution,
    name_unusable(r.usable, r.same_as, r.errors, r.origin, r.relationship, d.figures_are, r.printed_until)
        AS unusable
FROM results r
LEFT JOIN documents d USING (document_id)
LEFT JOIN few_figures USING (result_id)
LEFT JOIN doubts USING (result_id)
LEFT JOIN setups ON setups.table_name = r.table_name
LEFT JOIN mlperf_entries e USING (result_id)
