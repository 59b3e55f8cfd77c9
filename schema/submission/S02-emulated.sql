-- The hand-in says itself that its figures are of an emulator or a simulator. A network may
-- simulate.
WITH words AS (
    SELECT
        line, name,
        if(name = 'model', regexp_extract(text, '(?i)\bemulat\w*'), find_emulator(text)) AS word
    FROM (
        UNPIVOT lines ON model, variant, platform, chip, framework, conditions
        INTO NAME name VALUE text
    )
)
SELECT
    'emulated' AS reason, format('{}, {}', locate_line(min(line)), arg_min(name, line)) AS place,
    format(
        'says ''{}'': an emulated figure may not be handed in as measured', arg_min(word, line)
    ) AS message
FROM words
WHERE word <> ''
HAVING count(*) > 0
UNION ALL
SELECT 'emulated', 'submission.toml, machine',
    format('says ''{}'': figures of an emulator are not measured', find_emulator(machine))
FROM description
WHERE find_emulator(machine) <> ''
UNION ALL
SELECT 'emulated', 'environment.json', 'the backend is an emulator: its figures are not measured'
FROM description
WHERE backend IN ('emulator', 'simulator')
