-- The table `chip_identities`: what the vocabulary has of the chips of the documents that are here.
SELECT k.*
FROM (
    VALUES {identities.identified: document_id, chip, chip_printed, chip_confidence, chip_source}
) AS k (document_id, chip, chip_printed, chip_confidence, chip_source)
JOIN documents USING (document_id)
