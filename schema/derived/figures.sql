-- The figures that few results have, one row each. `results` holds here what the sources fill of these columns; `known_unit`
-- has the unit of each metric.
SELECT
    f.result_id, f.metric, f.value, u.unit,
    CASE
        WHEN f.metric IN ('power_w', 'energy_per_item_j') THEN f.power_scope
        WHEN f.metric = 'quality_value' THEN f.quality_metric
        WHEN f.metric <> 'run_energy_j' THEN NULL
        WHEN regexp_matches(f.conditions, '\benergy of one hour\b') THEN 'one hour'
        WHEN regexp_matches(f.conditions, '\benergy of one epoch, (per|of) IPU\b') THEN 'one epoch, of one chip'
        WHEN regexp_matches(f.conditions, '\benergy of one epoch\b') THEN 'one epoch'
        WHEN regexp_matches(f.conditions, '\benergy of the run, of GPU\b') THEN 'one run, of one chip'
    END AS scope
FROM (
    UNPIVOT results
    ON COLUMNS(* EXCLUDE (result_id, power_scope, quality_metric, conditions))
    INTO NAME metric VALUE value
) f
JOIN known_unit u USING (metric)
ORDER BY f.result_id, f.metric
