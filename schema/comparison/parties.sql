-- Who measured a row, in the order in which the nearest row of each is shown, with words for a
-- table and for the sentence "1.09 × the nearest ...".
FROM (VALUES
    (1, 'vendor', 'measured by the chip''s maker', 'row measured by the chip''s maker'),
    (2, 'independent', 'published by another party', 'row published by another party'),
    (3, 'official', 'official MLPerf', 'official MLPerf row'),
    (4, 'submitted', 'submitted by a user', 'row submitted by a user'),
    (5, 'own', 'measured by this project', 'row measured by this project'),
    (6, 'unknown', 'published, maker of the chip unknown',
        'published row, maker of the chip unknown,'),
    (7, 'emulated', 'emulated, not measured', 'row that is emulated, not measured')
) AS parties (place, party, title, sentence)
