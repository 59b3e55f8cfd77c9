SELECT * EXCLUDE (near_sdk, excluded_because, bow_document_id, classic_document_id)
FROM detail.generation_pairs
WHERE near_sdk AND excluded_because IS NULL
