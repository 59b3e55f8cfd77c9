-- Claims with the document that made them.
SELECT
    c.*, d.publisher,
    concat_ws(
        ', ', d.publisher, format('“{}”', d.title),
        coalesce(d.published_on::VARCHAR, 'day not known'), nullif(d.url, ''), nullif(c.place, '')
    ) AS source
FROM claims c
JOIN documents d USING (document_id)
ORDER BY document_id, claim_id
