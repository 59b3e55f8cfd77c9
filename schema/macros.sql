-- What the statements of this folder share: how figures and words are written, and the work that a
-- rate implies.
-- They are published, and DuckDB 1.2 has no `if` in a macro or a view.

-- A double with as few digits as identify it, at most 12 where these need no exponent: 1489341,
-- 0.00012. The decimals write a very small or very large one with all its digits.
CREATE OR REPLACE MACRO format_figure(x) AS
    CASE
        WHEN NOT contains(format('{:.12g}', x), 'e') THEN format('{:.12g}', x)
        WHEN abs(x) < 1 THEN rtrim(x::VARCHAR::DECIMAL(38, 37)::VARCHAR, '0')
        ELSE rtrim(rtrim(x::VARCHAR::DECIMAL(38, 12)::VARCHAR, '0'), '.')
    END;

-- Three significant digits, for ratios and estimates.
CREATE OR REPLACE MACRO round_figure(x) AS CAST(format('{:.3g}', x) AS DOUBLE);
CREATE OR REPLACE MACRO format_rounded(x) AS format_figure(round_figure(x));

-- A number with as many significant digits, whole from there on, without an exponent or a last zero.
CREATE OR REPLACE MACRO format_plain(x, digits := 3) AS
    regexp_replace(
        format('{:.{}f}', x::DOUBLE,
            greatest(0, digits - 1 - floor(log10(nullif(abs(x), 0))))::INTEGER),
        '\.0+$|(\.\d*[1-9])0+$', '\1'
    );

-- A share as a percentage: 0.124 is 12.4% with one decimal.
CREATE OR REPLACE MACRO format_share(x, decimals) AS format('{:.{}f}%', x * 100, decimals);

-- Half a unit of the last digit that a figure is printed with, in the printed unit.
CREATE OR REPLACE MACRO half_digit(printed) AS
    0.5 / pow(10, length(regexp_extract(printed, '\.(\p{Nd}+)$', 1)));

-- The significant digits of a figure, zeros at its end excluded.
CREATE OR REPLACE MACRO count_digits(x) AS length(trim(
    regexp_replace(split_part(x::DOUBLE::VARCHAR, 'e', 1), '[-.]', '', 'g'), '0'
));

-- How grave it is that two figures which should be equal have this ratio: 1 % is a warning.
CREATE OR REPLACE MACRO grade_gap(ratio) AS
    CASE WHEN abs(ratio - 1) >= 0.01 THEN 'warn' ELSE 'info' END;

-- Whether batches in flight, of which one is this ratio of the other, contradict each other.
CREATE OR REPLACE MACRO is_unlike_depth(ratio) AS ratio NOT BETWEEN 1 / 1.5 AND 1.5;

-- A number in a shape, such as 1472 for `tiles` in `n=512 tiles=1472`.
CREATE OR REPLACE MACRO size_in(shape, name) AS
    try_cast(regexp_extract(' ' || shape || ' ', '\s' || name || '=(\d+)\s', 1) AS DOUBLE);

-- The folder that a path is in: `Graphcore/results/ipu-pod16` of `Graphcore/results/ipu-pod16/bert`.
CREATE OR REPLACE MACRO parent_folder(path) AS regexp_extract(path, '^(.*)/', 1);

-- What MLPerf rounds are ordered by: 2.0 before 2.1 before 10.0.
CREATE OR REPLACE MACRO order_round(round) AS TRY_CAST(string_split(round, '.') AS INTEGER[]);

-- Forward, and in training twice as much backward.
CREATE OR REPLACE MACRO count_passes(task) AS CASE task WHEN 'training' THEN 3 ELSE 1 END;

-- TFLOP/s of a rate: a multiply-accumulate is two operations, and `gmacs` are 10⁹ of them.
CREATE OR REPLACE MACRO compute_tflops(rate, gmacs, passes) AS rate * gmacs * 2 * passes / 1000;

-- `34 %`. Null for a share of nothing, as is every text of a null.
CREATE OR REPLACE MACRO format_percent(share) AS
    CASE WHEN isfinite(share) THEN format('{:.0f} %', 100 * share) END;

-- A number of things: `1 row`, `2,000 rows`.
CREATE OR REPLACE MACRO format_count(n, noun) AS
    format('{:,} {}{}', CAST(n AS BIGINT), noun, CASE WHEN n = 1 THEN '' ELSE 's' END);

-- Words in a sentence: `a`, `a and b`, `a, b and c`. Null for none.
CREATE OR REPLACE MACRO join_words(words) AS
    CASE
        WHEN len(words) > 1 THEN array_to_string(words[:-2], ', ') || ' and ' || words[-1]
        ELSE CAST(words[1] AS VARCHAR)
    END;

-- The different texts of some rows, sorted, as words in a sentence.
CREATE OR REPLACE MACRO join_distinct(texts) AS
    join_words(list(DISTINCT texts ORDER BY texts) FILTER (texts IS NOT NULL));

-- How many ratios there are, and how far they go: `one pair`, `9 pairs, 0.60 to 1.13`.
CREATE OR REPLACE MACRO format_range(ratios) AS
    CASE count(ratios)
        WHEN 1 THEN 'one pair'
        ELSE format('{} pairs, {:.2f} to {:.2f}', count(ratios), min(ratios), max(ratios))
    END;

-- The geometric mean of ratios with their range: `0.81 (9 pairs, 0.60 to 1.13)`.
CREATE OR REPLACE MACRO format_ratios(ratios) AS
    format('{:.2f} ({})', geomean(ratios), format_range(ratios));

-- The ends of some numbers, `1.8 to 2.4`, or the one that all are.
CREATE OR REPLACE MACRO format_ends(numbers) AS
    concat_ws(
        ' to ',
        format('{:.1f}', min(numbers)),
        nullif(format('{:.1f}', max(numbers)), format('{:.1f}', min(numbers)))
    );

-- Wilson's interval of 95 % for the share that k of n are an instance of: `39 to 86 %`.
CREATE OR REPLACE MACRO format_wilson(k, n) AS
    format(
        '{:.0f} to {:.0f} %',
        greatest(0, 100 * (k + 1.92 - 1.96 * sqrt(k * (n - k) / n + 0.96)) / (n + 3.84)),
        100 * (k + 1.92 + 1.96 * sqrt(k * (n - k) / n + 0.96)) / (n + 3.84)
    );

-- A score with its interval: `34.49 [33.25, 35.73]`.
CREATE OR REPLACE MACRO format_minutes(score, low, high) AS
    format('{:.2f}', score) || coalesce(format(' [{:.2f}, {:.2f}]', low, high), '');

-- The size of an MLPerf system: its chips, or its nodes where it has none.
CREATE OR REPLACE MACRO name_size(chip_count, nodes) AS
    CASE
        WHEN chip_count = 0 AND nodes IS NOT NULL THEN nodes || '-nodes'
        ELSE chip_count::VARCHAR
    END;

-- A name without case, blanks, hyphens and underscores, the form in which names are compared.
CREATE OR REPLACE MACRO normalise_name(name) AS
    lower(regexp_replace(name, '[\s\-_]+', '', 'g'));

-- Why no verdict and no ranking rests on a row; `usable` says that one may.
CREATE OR REPLACE MACRO name_unusable(usable, same_as, errors, origin, relationship, figures_are, printed_until) AS
    CASE
        WHEN usable THEN NULL
        WHEN same_as IS NOT NULL THEN 'repeated'
        WHEN errors > 0 THEN 'error'
        WHEN origin = 'official' THEN 'repeated'  -- another entry has the same runs
        WHEN origin = 'emulated' THEN 'emulated'
        WHEN relationship = 'submitted' THEN 'submitted'
        WHEN figures_are IS NOT NULL THEN figures_are
        WHEN printed_until IS NOT NULL THEN 'superseded'
        ELSE 'suspect'
    END;

-- The words of a chip's name, without the generation of its socket: H100-SXM5-80GB has h100, sxm
-- and 80gb.
CREATE OR REPLACE MACRO list_words(name) AS
    regexp_extract_all(regexp_replace(lower(name), 'sxm\d', 'sxm'), '[a-z0-9]+');
