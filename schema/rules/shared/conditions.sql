-- The published rows with the parts of their conditions that are compared over rows. `work` is the task and the network.
-- `words` is the variant without its sequence length. `maker` is that of the chip: vocabulary `makers`. `ipu` is the
-- chip where it is an IPU of a generation.
SELECT
    p.*, m.maker, g.chip AS ipu,
    p.task || ' of ' || p.model_printed AS work,
    p.dataset_printed || ' and ' || m.maker AS data_and_maker,
    p.framework || ' and ' || m.maker AS framework_and_maker,
    nullif(regexp_extract(p.variant, '{sequence_length}', 1), '') AS sequence_length,
    regexp_replace(p.variant, '{sequence_length}', 'SL') AS words
FROM rules.published p
LEFT JOIN (
    SELECT chip, any_value(maker) AS maker
    FROM (SELECT DISTINCT chip FROM rules.published)
    JOIN (VALUES {makers.maker: name, device}) AS known (maker, device) ON regexp_matches(chip, device)
    GROUP BY chip
) AS m ON m.chip = p.chip
LEFT JOIN (SELECT DISTINCT chip FROM platforms WHERE family IN ({ipu_families})) AS g
    ON g.chip = p.chip
