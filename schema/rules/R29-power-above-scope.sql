-- scope: document
-- Flag more power than the chips or the machine that `power_scope` names are rated for. The power is the printed one, else
-- throughput × energy per item, else throughput / efficiency. Energy of chips or cards is compared with the rating of one
-- chip × chips, or of one where the conditions say that it is of each chip. A die is compared with the whole chip. A row
-- without a scope, or without a rating, is not checked. What contradictions say of the figure is in the message.
SELECT
    p.result_id, p.column_name, 'error' AS severity,
    concat_ws('; ', format(
        '{} W: {}; {} (power of {}{}) are rated {} W', format_rounded(power), origin,
        if(is_of_chips, format('{} × {}', rated_chips, chip), platform),
        power_scope, dies, format_figure(limit_w)
    ), c.entries) AS message
FROM rules.power_above_scope p
LEFT JOIN rules.contradicted_figures c USING (result_id, column_name)
