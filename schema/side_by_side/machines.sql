-- Each name with its chip in whatever form, with its size, as A100 8 is of all memories and forms,
-- and with who published figures of it. A newer row decides where rows differ.
SELECT
    name, arg_min(chip, place) AS printed_chip,
    regexp_replace(printed_chip, '-(SXM\d?|PCIe|NVL)', '') AS chip,
    concat(
        coalesce(nullif(regexp_extract(printed_chip, '[A-Z]+\d+'), ''), printed_chip), ' ',
        arg_min(chip_count, place)
    ) AS size,
    list(publisher) AS publishers
FROM rows
GROUP BY name
