-- Which peak of a chip bounds work at a precision as printed: vocabulary `precisions.peaks`.
FROM (VALUES {precisions.peaks: name, value}) AS bound (precision_printed, bound)
