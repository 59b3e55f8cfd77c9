-- Who measured a row of results or microbenchmarks, and with what interest: rows as those of `added`.
--
-- Who measured is the submitter of an official entry, else whom the document names, else who published
-- it. That a maker lent its code or a machine gives it no part here: `replications.vendor_part`.
WITH known_maker AS (
    FROM (VALUES {makers.maker: name, party, device}) AS known (name, party, device)
),
rows AS (
    SELECT
        'results' AS relation,
        result_id AS id,
        r.document_id,
        r.origin,
        e.submitter,
        -- an official entry without accelerators ran on its host processors
        coalesce(r.chip, e.host_processor, r.platform) AS device
    FROM results r
    LEFT JOIN read.mlperf_entries e USING (document_id, table_name, row_number)
    UNION ALL BY NAME
    SELECT
        'microbenchmarks' AS relation,
        microbenchmark_id AS id,
        document_id,
        'published' AS origin,
        chip AS device
    FROM microbenchmarks
),
measured AS (
    SELECT
        rows.*,
        d.kind,
        d.publisher,
        d.measured_by,
        CASE
            WHEN submitter IS NOT NULL THEN 'submitter'
            WHEN measured_by IS NOT NULL THEN 'measured_by'
            ELSE 'publisher'
        END AS named_in,
        coalesce(submitter, measured_by, publisher) AS party
    FROM rows
    JOIN documents d USING (document_id)
),
parties AS (  -- the makers that a text names, and whether it names anyone else
    SELECT
        m.party,
        list(k.name ORDER BY k.name) AS makers,
        len(makers) > 1
            OR bool_or(regexp_matches(regexp_replace(m.party, k.party, '', 'g'), '[[:alpha:]]'))
            AS are_several
    FROM (SELECT DISTINCT party FROM measured) m
    JOIN known_maker k ON regexp_matches(m.party, k.party)
    GROUP BY m.party
),
devices AS (
    SELECT m.device, any_value(k.name) AS maker
    FROM (SELECT DISTINCT device FROM measured) m
    JOIN known_maker k ON regexp_matches(m.device, k.device)
    GROUP BY m.device
),
judged AS (
    SELECT
        *,
        CASE
            WHEN origin = 'official' THEN 'official'
            WHEN kind = 'submission' THEN 'submitted'
            WHEN origin IN ('measured', 'emulated') THEN 'own'
            WHEN maker IN (publisher, measured_by) THEN 'vendor'
            WHEN maker IS NOT NULL THEN 'independent'
        END AS relationship,
        CASE
            WHEN kind = 'submission' THEN 'submitted'
            WHEN origin IN ('measured', 'emulated') THEN 'own'
            WHEN makers IS NULL THEN 'neither'
            WHEN are_several THEN 'both'
            WHEN maker = makers[1] THEN 'maker'
            WHEN maker IS NOT NULL THEN 'rival'
        END AS interest,
        CASE WHEN interest = 'own' THEN NULL ELSE concat(named_in, ': ', party) END
            AS interest_source
    FROM measured
    LEFT JOIN parties USING (party)
    LEFT JOIN devices USING (device)
)
SELECT relation, id, v.*
FROM judged,
(VALUES
    ('relationship', relationship),
    ('interest', interest),
    ('interest_source', interest_source)
) AS v (column_name, value)
WHERE v.value IS NOT NULL
