-- The printed precisions that fit what a configuration sets: vocabulary `precisions.settings`. A setting that leaves the
-- precision open, such as 8-bit input, has no row.
FROM (VALUES {precisions.settings: name, value}) AS settings (setting, precision_printed)
WHERE precision_printed IS NOT NULL
