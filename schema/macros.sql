-- What the statements of this folder share: how a figure is written.

-- A double with as few digits as identify it, at most 12, without an exponent: 1489341, 0.00012.
CREATE OR REPLACE MACRO format_figure(x) AS
    CASE
        WHEN contains(format('{:.12g}', x), 'e') THEN rtrim(rtrim(format('{:.17f}', x), '0'), '.')
        ELSE format('{:.12g}', x)
    END;

-- Three significant digits, for ratios and estimates.
CREATE OR REPLACE MACRO round_figure(x) AS CAST(format('{:.3g}', x) AS DOUBLE);
CREATE OR REPLACE MACRO format_rounded(x) AS format_figure(round_figure(x));

-- A number with as many significant digits, whole from there on, and without an exponent.
CREATE OR REPLACE MACRO format_plain(x, digits := 3) AS
    CASE
        WHEN abs(x) >= 10 ** digits THEN format('{:.0f}', x)
        ELSE format_figure(CAST(format('{:.{}g}', x, digits) AS DOUBLE))
    END;

-- A share as a percentage: 0.124 is 12.4% with one decimal.
CREATE OR REPLACE MACRO format_share(x, decimals) AS format('{:.{}f}%', x * 100, decimals);
