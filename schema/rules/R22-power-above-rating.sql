-- scope: document
-- Flag more power, throughput over efficiency, than the machine is rated for. The rule is one-sided, since no source says
-- what a machine draws at rest.
SELECT
    result_id, 'efficiency' AS column_name, 'warn' AS severity,
    format(
        '{} W: throughput {} / efficiency {}; {} is rated {} W',
        format_figure(round(throughput / efficiency, 1)), format_figure(throughput),
        format_figure(efficiency), platform, format_figure(rated_power_w)
    ) AS message
FROM rules.published
WHERE throughput / efficiency > rated_power_w
