-- Claims with the document that made them. `words` are those of `$text`, and `missing` those of them
-- that a claim does not have: a number is one of its numbers, another word the beginning of a word.
WITH texts AS (
    SELECT claim_id, concat_ws(' ', claim, figure, subject) AS text FROM claims
    UNION ALL
    SELECT NULL, $text
),
split AS (
    SELECT
        claim_id,
        regexp_extract_all(
            -- blanks of Unicode, too: \s has those of ASCII alone
            regexp_replace(lower(text), '[\s\pZ]*(%|per[\s\pZ]?cent\b)', '%', 'g'),
            -- a percentage is a word: 40% is neither 40 nor 40x
            '[0-9]+(?:[.][0-9]+)?%|[\pL\pN]+(?:[.][0-9]+[a-z]*)?'
        ) AS words
    FROM texts
)
SELECT
    c.*, d.publisher,
    concat_ws(
        ', ', d.publisher, format('“{}”', d.title),
        coalesce(d.published_on::VARCHAR, 'day not known'), nullif(d.url, ''), nullif(c.place, '')
    ) AS source,
    asked.words,
    list_filter(
        asked.words,
        lambda word: len(list_filter(
            own.words,
            lambda other: CASE
                WHEN regexp_full_match(word, '[0-9.]+%?') THEN rtrim(other, 'x') = word
                ELSE starts_with(other, word)
            END
        )) = 0
    ) AS missing
FROM claims c
JOIN documents d USING (document_id)
JOIN split own USING (claim_id)
JOIN split asked ON asked.claim_id IS NULL
ORDER BY document_id, claim_id
