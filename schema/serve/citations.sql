-- What a citation of some rows of `citable` needs, in the order of `ids`: what ran where, the
-- `figures` as their source prints them, the source, and what must be disclosed with them.
WITH cited AS (
    SELECT
        c.*, list_position($ids, c.result_id) AS position, d.title,
        d.url AS document_url, d.retrieved_on::VARCHAR AS retrieved_on,
        d.published_on::VARCHAR AS issued_on,
        d.publisher = 'local' AS is_ours,  -- of this project's own runs
        if(is_ours, $author, d.publisher) AS author,
        c.benchmark IS NOT DISTINCT FROM 'mlperf-training' AS is_score,
        e.benchmark AS entered, e.attribution
    FROM citable c
    JOIN documents d USING (document_id)
    -- a vendor prints the score of an official entry
    LEFT JOIN mlperf_entries e ON e.result_id IN (c.result_id, c.same_as)
    WHERE position > 0
),
printed AS (
    SELECT
        result_id, p.column_name, p.cell_number, p.unit, p.source_url,
        coalesce(p.source_locator, p.locator) AS place,  -- in our file where no better is known
        trim(p.raw_text, E' \t\r\n') AS text,
        -- A number that this project computed, without float noise. Times of MLPerf are in
        -- milliseconds, and nine digits are beyond what they resolve.
        CASE
            WHEN NOT regexp_full_match(text, '\d+\.\d+(e-?\d+)?') THEN text
            WHEN format('{:.12g}', text::DOUBLE) <> format('{:.12g}', p.value) THEN text
            WHEN p.locator_in = 'derivation' THEN format('{:.9g}', text::DOUBLE)::DOUBLE::VARCHAR
            WHEN is_ours THEN p.value::VARCHAR
            ELSE text
        END AS figure
    FROM cited
    JOIN provenance p USING (result_id, document_id)
    WHERE list_contains($figures, p.column_name)
),
figures AS (
    SELECT
        result_id, column_name,
        arg_min(concat_ws(' ', figure, unit), cell_number) AS text,
        arg_min(place, cell_number) AS place
    FROM printed
    GROUP BY result_id, column_name
),
-- as near to the row as is known
places AS (
    SELECT result_id, arg_min_null(source_url, cell_number) AS first_url
    FROM printed
    GROUP BY result_id
),
notes AS (
    SELECT
        result_id, '' AS rule, '' AS column_name,
        if(
            origin = 'measured', 'Measured by ipu-results.',
            concat(
                'Emulated by ipu-results, not measured', ', calibration ' || calibration_id, '.'
            )
        ) AS note
    FROM cited
    LEFT JOIN detail.run_points USING (result_id)
    WHERE origin IN ('measured', 'emulated')
    UNION ALL
    SELECT
        result_id, rule, column_name,
        -- R47 flags a row that its own source calls suspect
        if(
            rule = 'R47', format('Suspect: {}.', message),
            format('Quality rule {} of ipu-results flags an error: {}.', rule, message)
        )
    FROM cited
    JOIN flags f USING (result_id)
    WHERE severity = 'error' OR rule = 'R47'
),
described AS (
    SELECT
        *,
        concat_ws(
            ', ',
            if(model_printed = model, model, format('{} ({})', model_printed, model)),
            nullif(variant, ''), task, platform,
            format('{:,} chip{}', chip_count, if(chip_count = 1, '', 's')),
            'batch ' || batch_size,
            nullif(concat_ws(
                ' ', framework,
                nullif(regexp_extract(conditions, '^compiled by (\w+)$', 1), ''), sdk_version
            ), ''),
            precision, submitter
        ) AS description,
        coalesce(first_url, document_url) AS url
    FROM cited
    LEFT JOIN places USING (result_id)
),
-- Each list is joined: to plan a subquery for each row takes longer than all else here.
figures_of AS (
    SELECT
        result_id,
        list(
            {'column_name': column_name, 'text': text, 'place': place}
            ORDER BY list_position($figures, column_name)
        ) AS figures
    FROM figures
    GROUP BY result_id
),
notes_of AS (
    SELECT result_id, list(note ORDER BY rule, column_name) AS notes FROM notes GROUP BY result_id
),
flags_of AS (
    SELECT
        result_id,
        list(
            {'rule': rule, 'severity': severity, 'column_name': column_name, 'message': message}
            ORDER BY rule, severity, column_name
        ) AS flags
    FROM flags
    GROUP BY result_id
)
SELECT
    result_id, description, origin, is_score, document_id, title, author, url, document_url,
    issued_on, retrieved_on,
    CASE  -- the word that must stand at each figure
        WHEN origin = 'emulated' THEN 'emulated, not measured'
        WHEN is_score OR origin = 'official' THEN 'unverified'
    END AS status,
    coalesce(figures, []) AS figures, coalesce(notes, []) AS notes, coalesce(flags, []) AS flags,
    -- what MLCommons requires of a footnote: suite, version, division, benchmark, source, status
    CASE
        WHEN origin = 'official' AND attribution IS NOT NULL
            -- where it ends in the status, which follows
            THEN regexp_replace(attribution, ', result not verified by MLCommons Association$', '')
        WHEN is_score THEN format(
            'MLPerf Training v{} {} {}, as printed by {}; entry {}; {}',
            coalesce(mlperf_round, ' unknown'), coalesce(division, 'division unknown'),
            coalesce(entered, model_printed), concat_ws(', ', author, url),
            coalesce(mlperf_id, 'not known'),
            coalesce('retrieved ' || retrieved_on, 'day of retrieval not known')
        )
    END || '. Result not verified by MLCommons Association.' AS attribution
FROM described
LEFT JOIN figures_of USING (result_id)
LEFT JOIN notes_of USING (result_id)
LEFT JOIN flags_of USING (result_id)
ORDER BY position
