-- The published rows in printed order (`place`), with what several rules look at. `network` is what ran under the printed
-- name, `family` the generation of the machine and `rated_power_w` what it may draw. `in_flight` is batches in flight by
-- Little's law, throughput × latency / batch: less than one is impossible if the latency is that of a batch.
-- `item_latency` marks a latency that is of an item, or must be: its source says so, or less than a batch is in flight.
-- Measured and emulated rows have checks of their own. Of a page whose history is known these are the rows that it prints
-- now: the older ones are the same configurations again, and no siblings of them. Reference values of tests are left out:
-- nobody says that they were measured.
WITH few_figures AS (
    SELECT
        result_id,
        max(value) FILTER (metric = 'latency_std_ms') AS latency_std_ms,
        max(value) FILTER (metric = 'power_w') AS power_w,
        max(value) FILTER (metric = 'energy_per_item_j') AS energy_per_item_j,
        max(value) FILTER (metric = 'time_to_result_s') AS time_to_result_s
    FROM figures
    GROUP BY result_id
), places AS (  -- without the other columns: all rows are ordered at once
    SELECT
        result_id,
        row_number() OVER (ORDER BY document_id, table_name, row_number, result_id) AS place
    FROM results
    WHERE origin = 'published' AND printed_until IS NULL
        AND document_id NOT IN (SELECT document_id FROM documents WHERE figures_are IS NOT NULL)
), described AS (
    SELECT
        r.result_id, r.document_id, r.table_name, r.row_number, r.task, r.model_printed, r.variant,
        r.dataset_printed, r.platform, r.chip, r.chip_count, r.sdk_version, r.framework,
        r.precision_printed, r.activation_bits, r.batch_size, r.micro_batch_size, r.mlperf_id,
        r.input_tokens, r.output_tokens, r.throughput, r.item, r.latency_ms, r.latency_basis,
        r.efficiency, r.power_scope,
        r.conditions, t.header_printed, f.* EXCLUDE (result_id), m.family, m.rated_power_w,
        coalesce(i.model, r.model_printed) AS network,
        r.throughput * r.latency_ms / 1000.0 / r.batch_size AS in_flight,
        o.place
    FROM results r
    JOIN places o ON o.result_id = r.result_id
    LEFT JOIN few_figures f ON f.result_id = r.result_id
    LEFT JOIN detail.source_tables t
        ON t.document_id = r.document_id AND t.table_name = r.table_name
    LEFT JOIN platforms m ON m.platform = r.platform
    LEFT JOIN rules.identities i ON i.model_printed = r.model_printed AND i.platform = r.platform
        AND i.framework = r.framework
)
SELECT
    *,
    coalesce(in_flight < {MIN_BATCHES_IN_FLIGHT} AND throughput > 0, FALSE) AS below_one_batch,
    coalesce(latency_basis = 'per-item', FALSE) OR below_one_batch AS item_latency
FROM described
