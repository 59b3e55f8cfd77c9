-- The runs of the user, and each measurement of the record once (`run` is null), with what follows
-- from their columns: who measured, the peak of the chips, the work of an item, the share of it.
WITH peaks_of_width AS (
    -- of equal peaks, the certain one
    SELECT DISTINCT ON (chip, width)
        chip, name_width(type) AS width, tflops AS peak, is_certain AS is_certain_peak
    FROM bounds
    ORDER BY chip, width, tflops DESC, is_certain DESC
),
rows AS (
    FROM mine
    UNION ALL BY NAME
    -- in the order of the sources, which rows that are equally near keep
    SELECT *, row_number() OVER (ORDER BY document_id, table_name, row_number, result_id) AS place
    FROM candidates
    WHERE unusable IS DISTINCT FROM 'repeated'
)
SELECT
    rows.*,
    concat_ws(
        ', ', if(throughput IS NULL, NULL, 'throughput'),
        if(latency_ms IS NULL, NULL, 'latency_ms'), if(minutes IS NULL, NULL, 'minutes'),
        if(efficiency IS NULL, NULL, 'efficiency'), if(power_w IS NULL, NULL, 'power_w')
    ) AS printed,
    if(origin = 'emulated', 'emulated', coalesce(relationship, 'unknown')) AS party,
    party NOT IN ('emulated', 'submitted') AS is_evidence,  -- a verdict may rest on it
    coalesce(latency_basis, latency_kind) AS basis,
    -- batches that follow each other: the interval of their latency is that of the throughput
    if(latency_kind = 'amortised', 1000 * batch_size / latency_ms_high, NULL) AS throughput_low,
    if(latency_kind = 'amortised', 1000 * batch_size / latency_ms_low, NULL) AS throughput_high,
    machines.family, machines.rated_power_w, machines.chip_count AS machine_chips,
    coalesce(types.type, nullif(normalise_name(precision), '')) AS type,
    peaks_of_width.peak, peaks_of_width.is_certain_peak,
    -- no count holds for weights that are skipped, or for sequences of unknown lengths
    if(coalesce(sparsity, 0) = 0 AND packed IS NOT TRUE, operations.macs / 1e9, NULL)
        AS counted_gmacs,
    -- what is counted for inference is known to be that of training for some networks alone
    if(task = 'inference' OR operations.training, counted_gmacs, NULL) AS gmacs,
    -- a token is a part of what is counted
    if(item = 'token', sequence_length, 1) AS parts,
    compute_tflops(throughput / parts, gmacs, count_passes(task))
        / (peaks_of_width.peak * rows.chip_count) AS peak_share
FROM rows
LEFT JOIN machines USING (platform)
LEFT JOIN types ON types.word = normalise_name(precision)
LEFT JOIN peaks_of_width
    ON peaks_of_width.chip = rows.chip
    AND peaks_of_width.width = name_width(coalesce(types.type, normalise_name(precision)))
LEFT JOIN operations
    ON operations.model = rows.model
    AND operations.variant = coalesce('SL' || sequence_length, rows.variant, '')
