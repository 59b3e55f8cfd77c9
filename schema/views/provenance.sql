WITH readmes AS (  -- a README per line of the comparators; a result may have several lines
    SELECT
        result_id, document_id, regexp_extract(locator, '^line \d+') AS line,
        max(raw_text) FILTER (WHERE column_name = 'repo') AS repo,
        max(raw_text) FILTER (WHERE column_name = 'path') AS path,
        max(raw_text) FILTER (WHERE column_name = 'commit') AS commit
    FROM cells WHERE column_name IN ('repo', 'path', 'commit')
    GROUP BY ALL
    HAVING repo IS NOT NULL
),
entries AS (
    SELECT document_id, result_id, path, system_path FROM mlperf_entries WHERE result_id IS NOT NULL
),
printed AS (
    SELECT
        c.*, d.title, d.url AS document_url, d.commit, d.kind, d.sha256, d.file, m.repo, m.commit AS readme_commit,
        m.path AS readme, k.repository, k.tag, k.path AS configuration, k.benchmark AS command,
        CASE
            -- these are of the rules of MLPerf, and in no file of the entry
            WHEN c.column_name IN ('logs_expected', 'entry_quality_target', 'second_quality_target') THEN NULL
            WHEN c.column_name IN ('chip_count', 'nodes', 'host_processors_per_node') THEN e.system_path
            ELSE e.path
        END AS entry_path
    FROM cells c
    JOIN documents d ON d.document_id = c.document_id
    LEFT JOIN readmes m
        ON m.result_id = c.result_id AND m.document_id = c.document_id
        AND m.line = regexp_extract(c.locator, '^line \d+')
    LEFT JOIN entries e ON e.result_id = c.result_id AND e.document_id = c.document_id
    LEFT JOIN detail.configurations k ON k.result_id = c.result_id AND k.document_id = c.document_id
    WHERE c.value IS NOT NULL
)
SELECT
    f.result_id, coalesce(r.model, b.operation) AS model, coalesce(r.platform, b.chip) AS platform, r.batch_size,
    f.column_name, f.header, f.raw_text, f.value, f.unit, f.factor,
    f.document_id, f.title, coalesce('https://github.com/' || f.repo, f.document_url) AS url, f.locator, f.sha256, f.file,
    f.cell_number, f.kind AS document_kind,
    CASE
        WHEN f.kind IN ('run', 'capture') THEN 'source'
        WHEN f.kind = 'derived' THEN 'derivation'
        ELSE 'transcription'
    END AS locator_in,
    CASE
        WHEN f.repo IS NOT NULL THEN 'https://github.com/' || f.repo || '/blob/' || f.readme_commit || '/' || f.readme
        WHEN f.repository IS NOT NULL
            THEN 'https://github.com/' || f.repository || '/blob/' || f.tag || '/' || f.configuration
        WHEN f.entry_path IS NOT NULL AND f.commit IS NOT NULL
            THEN f.document_url || '/tree/' || f.commit || '/' || replace(f.entry_path, ' ', '%20')
        ELSE f.document_url
    END AS source_url,
    CASE
        WHEN f.kind IN ('run', 'capture') THEN f.locator
        ELSE coalesce(
            f.source_locator, f.readme, f.configuration || ': ' || f.command, f.configuration, f.entry_path
        )
    END AS source_locator
FROM printed f
LEFT JOIN results r USING (result_id)
LEFT JOIN microbenchmarks b ON b.microbenchmark_id = f.result_id
