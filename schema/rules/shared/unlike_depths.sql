-- Rows whose batches in flight differ by more than 1.5 times from those of the same configuration: what R24 flags.
-- Siblings have the same command, variant, machine and way of timing, and differ in the batch. Latencies of an item are
-- excluded. `usual` is the median of the others.
WITH siblings AS (
    SELECT
        *,
        median(in_flight) OVER others AS usual,
        count(*) OVER others AS other_rows
    FROM rules.configured
    WHERE in_flight > 0 AND NOT item_latency
    WINDOW others AS (
        PARTITION BY
            repository, tag, path, benchmark, latency_definition, model_printed, variant, platform,
            framework, sdk_version
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW
    )
)
FROM siblings
WHERE other_rows >= 3 AND is_unlike_depth(in_flight / usual)
