-- Datasets whose rows have several sequences in each row of the batch: vocabulary `derived.dataset`.
SELECT dataset_printed
FROM (VALUES {derived.dataset: dataset_printed, packed}) AS dataset (dataset_printed, packed)
WHERE packed = 'yes'
